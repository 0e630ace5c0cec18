package engine

// The longest and the shortest run of last tokens that is looked for. A single token
// says too little of what follows it.
const (
	longestGram  = 4
	shortestGram = 2
)

// ngram appends up to n tokens that followed the last ones where as many as possible of
// them, longestGram at most, came before: the last place where they did.
func ngram(to, tokens []int32, n int) []int32 {
	best, at := shortestGram-1, 0
	last := len(tokens) - 1
	for i := last - 1; i >= best && best < longestGram; i-- {
		same := 0
		for same < longestGram && same <= i && tokens[i-same] == tokens[last-same] {
			same++
		}
		if same > best {
			best, at = same, i+1
		}
	}
	if at == 0 {
		return to
	}
	return append(to, tokens[at:min(at+n, len(tokens))]...)
}
