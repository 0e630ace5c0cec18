package guide

import "slices"

// formats are those that the module follows.
var formats = []string{"duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"}

// Dates and times as RFC 3339 has them, of days that there are, without leap seconds.
const (
	dateOf = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)` +
		`|02-(?:0[1-9]|1[0-9]|2[0-8]))` +
		`|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	timeOf = `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
)

// References as RFC 3986 has them, without addresses in brackets.
const (
	escapedOf   = `%[0-9A-Fa-f]{2}`
	charOf      = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|` + escapedOf + `)`
	firstOf     = `(?:[A-Za-z0-9._~!$&'()*+,;=@-]|` + escapedOf + `)`
	segmentsOf  = `(?:/` + charOf + `*)*`
	schemeOf    = `[A-Za-z][A-Za-z0-9+.-]*:`
	authorityOf = `//(?:[A-Za-z0-9._~!$&'()*+,;=:-]*@)?[A-Za-z0-9._~!$&'()*+,;=-]*(?::[0-9]{1,5})?`
	referenceOf = `(?:(?:` + schemeOf + `)?` + authorityOf + segmentsOf +
		`|` + schemeOf + `(?:` + charOf + `+` + segmentsOf + `)?` +
		`|(?:` + schemeOf + `)?/(?:` + charOf + `+` + segmentsOf + `)?` +
		`|(?:` + firstOf + `+` + segmentsOf + `)?)` +
		`(?:\?(?:` + charOf + `|[/?])*)?(?:#(?:` + charOf + `|[/?])*)?`
	pointerOf = `(?:/(?:[^~/]|~[01])*)*`
)

// format is one that is followed by other keywords.
type format struct {
	schema []member // nil: it changes nothing
	number bool     // it is followed for numbers alone
}

// formatAs has JSON Schema's, and those of OpenAPI's registry that are bounds or hints.
var formatAs = map[string]format{
	"date": matching(dateOf), "time": matching(timeOf), "date-time": matching(dateOf + "[Tt]" + timeOf),
	"uri-reference": matching(referenceOf), "json-pointer": matching(pointerOf),
	"relative-json-pointer": matching(`(?:0|[1-9][0-9]*)(?:#|` + pointerOf + `)`),
	"byte":                  matching(`(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?`),
	// The module has bounds as float64; int64 lacks the 1,024 least numbers.
	"int8": within("-128", "127"), "int16": within("-32768", "32767"), "int32": within("-2147483648", "2147483647"),
	"int64": within("-9223372036854774784", "9223372036854775807"), "uint8": within("0", "255"),
	"uint16": within("0", "65535"), "uint32": within("0", "4294967295"),
	"float": {number: true}, "double": {number: true}, "password": {},
}

func matching(pattern string) format {
	return format{schema: []member{{"pattern", literal("^(?:" + pattern + ")$")}}}
}

func within(least, most string) format {
	bounds := []member{{"minimum", &tree{raw: []byte(least)}}, {"maximum", &tree{raw: []byte(most)}}}
	return format{number: true, schema: bounds}
}

// followed reports whether a format can be followed in a schema: those of numbers say other
// things of texts.
func followed(name string, in *tree) bool {
	if slices.Contains(formats, name) {
		return true
	}
	f, ok := formatAs[name]
	if !ok || !f.number {
		return ok
	}
	types := []*tree{in.get("type")}
	if types[0] == nil {
		return false
	}
	if types[0].kind == isList {
		types = types[0].items
	}
	whole := len(f.schema) > 0
	return !slices.ContainsFunc(types, func(t *tree) bool {
		return t.text() == "string" || whole && t.text() == "number"
	})
}

// exclusives are draft 4's: whether the bound itself is left out.
var (
	exclusives  = map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
	exclusiveOf = map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
)
