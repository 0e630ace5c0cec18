"""The demo's tokenizer: byte-level BPE of 2,048 ids with GLM's pre-tokenizer pattern and special tokens."""

import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import tasks

SIZE = 2048
PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPECIAL = """<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> <|observation|> <think> </think>
<tool_call> </tool_call> <tool_response> </tool_response> <arg_key> </arg_key> <arg_value> </arg_value> /nothink""".split()
PLAIN = ("<think", "</think", "<tool", "</tool", "<arg", "</arg", "/no")  # added, but kept when special tokens are skipped
OTHER_SCRIPTS = "The quick brown fox jumps over the lazy dog. Naïve café, Straße, señor, 你好世界, こんにちは, Привет, שלום 😀👍🏽"


def texts():
    draw = random.Random(1)
    for _ in range(40000):
        _, system, user, answer = tasks.sample(draw)
        yield (system or "") + "\n" + user + "\n" + answer
    for _ in range(50):
        yield OTHER_SCRIPTS


def train(path):
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    # Merges are learnt on single digits, so that sums are digit by digit; the saved pre-tokenizer is GLM's.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split, level])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    size = SIZE - len(SPECIAL)
    tokenizer.train_from_iterator(
        texts(), trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, special_tokens=[], show_progress=False)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    tokenizer.add_special_tokens([AddedToken(t, special=not t.startswith(PLAIN), normalized=False) for t in SPECIAL])
    tokenizer.save(path)
    return tokenizer
