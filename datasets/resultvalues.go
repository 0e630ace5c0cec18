package datasets

import (
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

// valuer is a struct of ours that gives its columns' values itself: it does so many
// times faster than the library, which looks at every field anew.
type valuer interface {
	// values appends a value for each column, from the given number on.
	values(to parquet.Row, column int) parquet.Row
}

func (r *Result) values(to parquet.Row, column int) parquet.Row {
	for _, v := range [...]parquet.Value{
		optionalText(r.Response), optionalText(r.Reasoning), textValue(r.FinishReason), optionalText(r.StopReason),
		parquet.Int32Value(r.PromptTokens),
		parquet.Int32Value(r.CompletionTokens), optionalText(r.ErrorCode), optionalText(r.Error),
		parquet.Int64Value(r.RowIndex),
		parquet.Int32Value(r.SampleIndex), parquet.Int64Value(r.Seed), textValue(r.RunID),
	} {
		to = append(to, v.Level(0, v.DefinitionLevel(), column))
		column++
	}
	return to
}

// optionalText is at level 1 where it is there.
func optionalText(s *string) parquet.Value {
	if s == nil {
		return parquet.NullValue()
	}
	return textValue(*s).Level(0, 1, 0)
}

// textValue shares the text's memory.
func textValue(s string) parquet.Value {
	return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(s), len(s)))
}
