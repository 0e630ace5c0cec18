package datasets

// FindingsKey is the key under which a timeline's file metadata has its
// findings, as a JSON list of [Finding].
const FindingsKey = "glmbatch.findings"

// Finding is something a reader of a timeline must know before trusting its
// numbers, or wants to know about where they came from.
type Finding struct {
	Code     string `json:"code"`     // short and stable: "truncated", "missing_kernels"
	Severity string `json:"severity"` // "note", or "unreliable": totals or rankings may be wrong
	Rank     int32  `json:"rank"`     // -1: all ranks
	Count    int64  `json:"count"`    // events concerned; 0 where counting makes no sense
	Text     string `json:"text"`     // one line, with the remedy where there is one
}
