//! The part of glmbatch that knows which tokens may come next: llguidance, with an
//! interface of plain numbers for a host that has the module in a box.
//!
//! The host gives memory with `reserve`, says what the tokens are with `vocabulary`, and
//! then makes grammars and matchers, which it knows by number. What fails returns a
//! negative number and leaves its words at `message`. A panic is a trap: the module is of
//! no more use after it, and the host has others.

mod masks;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv,
};
use llguidance::{Matcher, ParserFactory};
use masks::{Masks, Slices, SLICES};

#[derive(Default)]
struct State {
    factory: Option<(ParserFactory, Arc<Slices>)>,
    grammars: Slots<Matcher>, // fresh ones, to be cloned
    matchers: Slots<Matcher>,
    message: String,
    mask: Option<SimpleVob>,
}

/// Slots keep values by number, and give numbers again.
struct Slots<T> {
    all: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    fn put(&mut self, value: T) -> i32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[at] = Some(value);
        at as i32
    }

    fn get(&mut self, at: u32) -> Option<&mut T> {
        self.all.get_mut(at as usize)?.as_mut()
    }

    fn drop(&mut self, at: u32) {
        if self.get(at).is_some() {
            self.all[at as usize] = None;
            self.free.push(at as usize);
        }
    }
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State::default());
}

const FAILED: i32 = -1;

/// with runs f and turns an error into FAILED and its words.
fn with(f: impl FnOnce(&mut State) -> Result<i32, String>) -> i32 {
    STATE.with_borrow_mut(|s| match f(s) {
        Ok(v) => v,
        Err(e) => {
            s.message = e;
            FAILED
        }
    })
}

/// bytes are what the host wrote to reserved memory, which is let go of.
fn bytes(at: *mut u8, len: usize) -> Vec<u8> {
    // Safety: the host passes what reserve(len) returned.
    unsafe { Vec::from_raw_parts(at, len, len) }
}

/// Memory for the host to write an argument to; the call that gets it lets it go.
#[no_mangle]
pub extern "C" fn reserve(len: usize) -> *mut u8 {
    let mut v: Vec<u8> = vec![0; len];
    let at = v.as_mut_ptr();
    std::mem::forget(v);
    at
}

/// The words of the last error, and their length.
#[no_mangle]
pub extern "C" fn message() -> *const u8 {
    STATE.with_borrow(|s| s.message.as_ptr())
}

#[no_mangle]
pub extern "C" fn message_len() -> usize {
    STATE.with_borrow(|s| s.message.len())
}

/// The tokens: for each its length (u32, little-endian) and bytes, in the order of their
/// numbers; none has length 0. Special ones begin with 0xff. Then the end tokens (u32
/// each). Called once.
#[no_mangle]
pub extern "C" fn vocabulary(at: *mut u8, len: usize, tokens: u32, ends: u32) -> i32 {
    let data = bytes(at, len);
    with(|s| {
        let mut rest = &data[..];
        let mut take = |n: usize| -> Result<&[u8], String> {
            if rest.len() < n {
                return Err("the vocabulary is cut short".into());
            }
            let (head, tail) = rest.split_at(n);
            rest = tail;
            Ok(head)
        };
        let mut words = Vec::with_capacity(tokens as usize);
        for _ in 0..tokens {
            let n = u32_of(take(4)?);
            words.push(take(n as usize)?.to_vec());
        }
        let mut eos = Vec::new();
        for _ in 0..ends {
            eos.push(u32_of(take(4)?));
        }
        let first = *eos.first().ok_or("no end tokens")?;
        let trie = TokTrie::from(&TokRxInfo::new(tokens, first), &words).with_eos_tokens(&eos);
        drop(words);
        let words = Arc::new(Words::new(trie));
        let env: TokEnv = words.clone();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &SLICES.map(String::from))
            .map_err(|e| format!("{e:#}"))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        words.whole.store(true, Ordering::Relaxed);
        s.factory = Some((factory, Slices::new(env)?));
        Ok(0)
    })
}

/// Words are the tokens as llguidance has them. While its factory is made it sees one of them
/// alone, as it would cut the vocabulary for its own masks: that takes twice the memory of
/// all else, and Masks are in place of those.
struct Words {
    all: ApproximateTokEnv,
    one: TokTrie,
    whole: AtomicBool,
}

impl Words {
    fn new(all: TokTrie) -> Words {
        let one = TokTrie::from(&TokRxInfo::new(1, 0), &[vec![b'a']]);
        Words { all: ApproximateTokEnv::new(all), one, whole: AtomicBool::new(false) }
    }
}

impl TokenizerEnv for Words {
    fn tok_trie(&self) -> &TokTrie {
        if self.whole.load(Ordering::Relaxed) {
            self.all.tok_trie()
        } else {
            &self.one
        }
    }

    fn tokenize_bytes(&self, s: &[u8]) -> Vec<TokenId> {
        self.all.tokenize_bytes(s)
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.all.tokenize_is_canonical()
    }
}

fn u32_of(b: &[u8]) -> u32 {
    u32::from_le_bytes([b[0], b[1], b[2], b[3]])
}

/// The kinds of grammars, as the host numbers them.
const KINDS: [&str; 3] = ["json_schema", "regex", "lark"];

/// A grammar of a kind from its text. Returns its number.
#[no_mangle]
pub extern "C" fn grammar(kind: u32, at: *mut u8, len: usize) -> i32 {
    let text = bytes(at, len);
    with(|s| {
        let (factory, slices) = s.factory.as_ref().ok_or("no vocabulary")?;
        let text = String::from_utf8(text).map_err(|_| "not UTF-8")?;
        let kind = KINDS.get(kind as usize).ok_or("no such kind of grammar")?;
        let top = TopLevelGrammar::from_tagged_str(kind, &text).map_err(|e| format!("{e:#}"))?;
        let mut parser = factory.create_parser(top).map_err(|e| format!("{e:#}"))?;
        parser.bias_computer = Arc::new(Masks::new(slices));
        let mut m = Matcher::new(Ok(parser));
        if let Some(e) = m.get_error() {
            return Err(e);
        }
        if let Some(w) = m.grammar_warnings().into_iter().next() {
            return Err(w);
        }
        Ok(s.grammars.put(m))
    })
}

#[no_mangle]
pub extern "C" fn drop_grammar(g: u32) {
    STATE.with_borrow_mut(|s| s.grammars.drop(g));
}

/// A matcher at the start of a grammar. Returns its number.
#[no_mangle]
pub extern "C" fn matcher(g: u32) -> i32 {
    with(|s| {
        let m = s.grammars.get(g).ok_or("no such grammar")?.clone();
        Ok(s.matchers.put(m))
    })
}

#[no_mangle]
pub extern "C" fn drop_matcher(m: u32) {
    STATE.with_borrow_mut(|s| s.matchers.drop(m));
}

/// Takes a token. 1: nothing but an end token can follow, or the token was one.
#[no_mangle]
pub extern "C" fn accept(m: u32, token: u32) -> i32 {
    with(|s| {
        let m = s.matchers.get(m).ok_or("no such matcher")?;
        m.consume_token(token).map_err(|e| format!("{e:#}"))?;
        Ok(m.is_stopped() as i32)
    })
}

/// How many of some tokens (u32 each) could follow, one after the other.
#[no_mangle]
pub extern "C" fn follow(m: u32, at: *mut u8, len: usize) -> i32 {
    let data = bytes(at, len);
    with(|s| {
        let m = s.matchers.get(m).ok_or("no such matcher")?;
        let tokens: Vec<u32> = data.chunks_exact(4).map(u32_of).collect();
        Ok(m.validate_tokens(&tokens).map_err(|e| format!("{e:#}"))? as i32)
    })
}

/// Takes back the last n tokens.
#[no_mangle]
pub extern "C" fn rollback(m: u32, n: u32) -> i32 {
    with(|s| {
        let m = s.matchers.get(m).ok_or("no such matcher")?;
        m.rollback(n as usize).map_err(|e| format!("{e:#}"))?;
        Ok(0)
    })
}

/// The tokens that may come next, a bit each in 32-bit words, at an address that is valid
/// until the next call.
#[no_mangle]
pub extern "C" fn mask(m: u32) -> i32 {
    with(|s| {
        let m = s.matchers.get(m).ok_or("no such matcher")?;
        let v = m.compute_mask_or_eos().map_err(|e| format!("{e:#}"))?;
        let at = v.as_ptr() as i32;
        s.mask = Some(v);
        Ok(at)
    })
}

/// 1: the text so far is complete.
#[no_mangle]
pub extern "C" fn complete(m: u32) -> i32 {
    with(|s| {
        let m = s.matchers.get(m).ok_or("no such matcher")?;
        if m.is_stopped() {
            return Ok(1);
        }
        Ok(m.is_accepting().map_err(|e| format!("{e:#}"))? as i32)
    })
}
