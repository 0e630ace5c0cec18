// Package tokenizer turns text into token ids and back, exactly as the Hugging
// Face "tokenizers" library does for byte-level BPE models (GLM, Qwen, Llama 3,
// GPT-2): the same ids from the same tokenizer.json, without its Rust code.
//
// Tokenizer is made by [Load] and is safe for concurrent use; Decoder turns a
// stream of ids into text without ever splitting a character.
//
// Caveats:
//
//   - Only byte-level BPE with all 256 byte symbols in the vocabulary is read.
//     No byte is then ever unknown, so unk_token, fuse_unk and byte_fallback
//     never come into play and are ignored. Other models, normalizers and
//     pre-tokenizers are refused by name.
//   - Three patterns have scanners of their own (GPT-2's, Llama 3's and GLM's,
//     Qwen's); others run in a backtracking engine at about a quarter of the
//     speed. Patterns that could take for ever, and those with \w or \b, which
//     differ between engines, are refused.
//   - Encode adds no special tokens (chat templates write them), so
//     post_processor is ignored, and so are truncation and padding.
//   - Bytes that are not valid UTF-8 are neither letters nor numbers nor space;
//     they are encoded as themselves, so no input is lost, and decode to U+FFFD.
//     The library's Python callers cannot pass such bytes.
//   - Letters and numbers are those of Unicode 16.0 and NFC is that of Unicode
//     9.0, as in version 0.23 of the library; a comparison with it over every
//     code point is in interop/tokenizer.
package tokenizer
