//! Masks of tokens, worked out so that what comes again costs little.
//!
//! A token whose bytes all stay within the lexeme at hand may come whatever the parser says,
//! and one that no lexeme goes on with may not: both follow from the lexer's state alone. Only
//! tokens in which a lexeme ends have to be asked of the parser. So a state's tokens are sorted
//! once, by the lexer's table, and the parser is asked of the last kind each time; of a short
//! text's states, as `maxLength` and `pattern` have them, that is a few thousand nodes of
//! 300,000.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use llguidance::derivre::StateID;
use llguidance::earley::{BiasComputer, ParserRecognizer};
use llguidance::toktrie::{Recognizer, SimpleVob, TokEnv, TokTrie, TrieNode};

/// Texts inside a JSON string, of any length and of a few: where a lexeme goes on with all
/// of them, their tokens need no walk. Each is within the one before.
pub const SLICES: [&str; 3] = [
    r#"[^"\\\x00-\x1F\x7F]+"#,
    r#"[^"\\\x00-\x1F\x7F]{1,30}"#,
    r#"[^"\\\x00-\x1F\x7F]{1,10}"#,
];

/// Fuel to see whether a lexeme goes on with all of a slice.
const SUBSUME_FUEL: u64 = 1000;

/// What took more nodes to sort than this part of all is kept.
const KEPT_PART: usize = 128;

/// What is kept of all grammars may take, in bytes.
const MOST_KEPT: usize = 32 << 20;

/// A trie of tokens, depth first.
struct Trie(Vec<Node>);

#[derive(Clone, Copy)]
struct Node {
    token: u32, // NONE: a part of tokens
    size: u32,  // of its subtree in nodes, itself too
    depth: u16, // 1 for the first byte
    byte: u8,
}

const NONE: u32 = u32::MAX;

/// Nodes of llguidance's trie are less deep.
const DEEPEST: usize = 1025 + 1;

impl Trie {
    /// The tokens of another trie that are kept.
    fn of(t: &TokTrie, keep: &dyn Fn(u32) -> bool) -> Trie {
        fn add(t: &TokTrie, n: &TrieNode, depth: u16, keep: &dyn Fn(u32) -> bool, to: &mut Vec<Node>) {
            let at = to.len();
            let token = n.token_id().filter(|&id| keep(id)).unwrap_or(NONE);
            to.push(Node { token, size: 1, depth, byte: n.byte() });
            for c in t.node_children(n) {
                add(t, c, depth + 1, keep, to);
            }
            if to.len() == at + 1 && token == NONE {
                to.pop();
            } else {
                to[at].size = (to.len() - at) as u32;
            }
        }
        let mut nodes = Vec::new();
        for c in t.node_children(t.root()) {
            add(t, c, 1, keep, &mut nodes);
        }
        nodes.shrink_to_fit();
        Trie(nodes)
    }

    /// Sorts the tokens by what a state of a lexer says of them.
    fn sort(&self, rec: &mut ParserRecognizer<'_>, state: StateID, mut inside: SimpleVob) -> Sorted {
        let lexer = rec.lexer_mut();
        let mut states = [state; DEEPEST];
        let mut path = [0; DEEPEST]; // nodes above the one at hand
        let mut written = 0; // of the path, that ends has
        let mut ends: Vec<Range<u32>> = Vec::new();
        let mut add = |from: usize, to: usize| match ends.last_mut() {
            Some(r) if r.end as usize == from => r.end = to as u32,
            _ => ends.push(from as u32..to as u32),
        };
        let (mut at, mut asked) = (0, 0);
        while let Some(n) = self.0.get(at) {
            asked += 1;
            let depth = n.depth as usize;
            written = written.min(depth - 1);
            let to = lexer.transition_start_state(states[depth - 1], Some(n.byte), &None);
            if !to.is_dead() && !to.has_lowest_match() {
                if n.token != NONE {
                    inside.allow_token(n.token);
                }
                states[depth] = to;
                path[depth] = at;
                at += 1;
                continue;
            }
            let end = at + n.size as usize;
            if !lexer.advance(states[depth - 1], n.byte, false, &None).is_error() {
                path[written + 1..depth].iter().for_each(|&i| add(i, i + 1));
                written = depth - 1;
                add(at, end);
            }
            at = end;
        }
        Sorted { inside, ends, asked }
    }

    /// Allows the tokens of some nodes whose bytes the parser takes. The nodes above those are
    /// among them.
    fn walk(&self, rec: &mut ParserRecognizer<'_>, nodes: &[Range<u32>], set: &mut SimpleVob) {
        rec.trie_started("walk");
        let mut depth = 0;
        for r in nodes {
            let mut at = r.start as usize;
            while at < r.end as usize {
                let n = self.0[at];
                let above = n.depth as usize - 1;
                if above > depth { // the lexer has failed
                    break;
                }
                rec.pop_bytes(depth - above);
                depth = above;
                if rec.try_push_byte(n.byte) {
                    depth += 1;
                    at += 1;
                    if n.token != NONE {
                        set.allow_token(n.token);
                    }
                } else {
                    at += n.size as usize;
                }
            }
        }
        rec.pop_bytes(depth);
        rec.trie_finished();
    }
}

/// Sorted are the tokens of a trie at a state of a lexer. Those that are in neither cannot come.
struct Sorted {
    inside: SimpleVob,     // tokens that stay within a lexeme
    ends: Vec<Range<u32>>, // nodes of tokens in which one ends, and of what is above them
    asked: usize,          // nodes that it took
}

/// The vocabulary, cut for walks.
pub struct Slices {
    env: TokEnv,
    whole: Trie,
    slices: Vec<Slice>,
    kept: AtomicUsize, // bytes of what all grammars' Masks keep
}

struct Slice {
    tokens: SimpleVob,
    others: Trie,
}

impl Slices {
    pub fn new(env: TokEnv) -> Result<Arc<Slices>, String> {
        let t = env.tok_trie();
        let mut slices = Vec::new();
        for text in SLICES {
            let mut regex = llguidance::derivre::Regex::new(text).map_err(|e| format!("{e:#}"))?;
            let mut tokens = t.alloc_token_set();
            for id in 0..t.vocab_size() as u32 {
                if !t.token(id).is_empty() && regex.is_match_bytes(t.token(id)) {
                    tokens.allow_token(id);
                }
            }
            let others = Trie::of(t, &|id| !tokens.is_allowed(id));
            slices.push(Slice { tokens, others });
        }
        let whole = Trie::of(t, &|_| true);
        Ok(Arc::new(Slices { env, whole, slices, kept: AtomicUsize::new(0) }))
    }

    /// The tokens that a slice has not.
    fn trie(&self, slice: Option<usize>) -> &Trie {
        slice.map_or(&self.whole, |i| &self.slices[i].others)
    }
}

/// What is known of one grammar's lexer.
pub struct Masks {
    slices: Arc<Slices>,
    states: Mutex<HashMap<StateID, Arc<Known>>>,
}

/// Known is what a state's mask is made of.
struct Known {
    slice: Option<usize>, // whose others are sorted
    sorted: Sorted,
}

impl Known {
    fn bytes(&self) -> usize {
        self.sorted.inside.as_slice().len() * 4 + self.sorted.ends.len() * size_of::<Range<u32>>()
    }
}

impl Masks {
    pub fn new(slices: &Arc<Slices>) -> Masks {
        Masks { slices: slices.clone(), states: Mutex::default() }
    }

    fn known(&self, rec: &mut ParserRecognizer<'_>) -> Arc<Known> {
        let state = rec.lexer_state();
        if let Some(k) = self.states.lock().unwrap().get(&state) {
            return k.clone();
        }
        let mut slice = None;
        let lexer = rec.lexer_mut();
        if lexer.subsume_possible(state) {
            let mut takes = |&i: &usize| lexer.check_subsume(state, i, SUBSUME_FUEL, None).unwrap_or(false);
            slice = (0..SLICES.len()).find(&mut takes);
        }
        let inside = slice.map_or_else(|| self.trie().alloc_token_set(), |i| self.slices.slices[i].tokens.clone());
        let sorted = self.slices.trie(slice).sort(rec, state, inside);
        let k = Arc::new(Known { slice, sorted });
        if k.sorted.asked > self.slices.whole.0.len() / KEPT_PART {
            self.keep(state, &k);
        }
        k
    }

    /// Keeps what is known, as far as there is room; else all else is forgotten first.
    fn keep(&self, state: StateID, k: &Arc<Known>) {
        let kept = &self.slices.kept;
        if kept.load(Ordering::Relaxed) + k.bytes() > MOST_KEPT {
            self.forget();
        }
        if kept.load(Ordering::Relaxed) + k.bytes() <= MOST_KEPT {
            kept.fetch_add(k.bytes(), Ordering::Relaxed);
            self.states.lock().unwrap().insert(state, k.clone());
        }
    }

    fn forget(&self) {
        for (_, k) in self.states.lock().unwrap().drain() {
            self.slices.kept.fetch_sub(k.bytes(), Ordering::Relaxed);
        }
    }
}

impl Drop for Masks {
    fn drop(&mut self) {
        self.forget();
    }
}

impl BiasComputer for Masks {
    fn compute_bias(&self, rec: &mut ParserRecognizer<'_>, start: &[u8]) -> SimpleVob {
        if !start.is_empty() {
            let mut set = self.trie().alloc_token_set();
            self.trie().add_bias(rec, &mut set, start);
            return set;
        }
        let k = self.known(rec);
        let mut set = k.sorted.inside.clone();
        self.slices.trie(k.slice).walk(rec, &k.sorted.ends, &mut set);
        set
    }

    fn trie(&self) -> &TokTrie {
        self.slices.env.tok_trie()
    }
}
