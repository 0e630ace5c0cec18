package datasets

import "fmt"

// The names in a job's output folder.
const (
	ManifestFile = "_manifest.json" // what the rows were made from, and how
	SuccessFile  = "_SUCCESS"       // written last
	LockFile     = ".lock"
	OutputsDir   = "outputs"
	StepsDir     = "steps"
	TimelineDir  = "timeline"
	CapturesDir  = "captures"
	JournalDir   = "_journal" // finished samples that are not in a part yet
)

// RowCapture is the file in CapturesDir of the last step of an input row with which a step
// ended badly before.
func RowCapture(row int64) string { return fmt.Sprintf("row-%08d.arrow", row) }

// RowCaptures is the pattern of those files.
const RowCaptures = "row-*.arrow"

// JobNames are those that a job writes and a new one with --overwrite removes: the
// manifest, by which the folder is known, goes last.
var JobNames = []string{SuccessFile, OutputsDir, StepsDir, TimelineDir, CapturesDir, JournalDir, ManifestFile}
