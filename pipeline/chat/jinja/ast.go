package jinja

// expr is an expression; stmt a statement. Each node evaluates itself.
type expr interface{ eval(r *run) any }

type stmt interface{ exec(r *run) signal }

// signal says how a statement ended.
type signal uint8

const (
	goOn signal = iota
	breakLoop
	continueLoop
)

// Expressions.
type (
	constant struct{ value any }
	variable struct {
		id   int // in Template.names
		name string
	}
	attribute struct {
		of   expr
		name string
		line int
	}
	item struct {
		of, key expr
		line    int
	}
	sliced   struct{ from, to, step expr } // nil: not given; only as the key of an item
	listOf   struct{ items []expr }
	tupleOf  struct{ items []expr }
	dictOf   struct{ keys, values []expr }
	negation struct{ of expr }
	sign     struct {
		minus bool
		of    expr
	}
	logic struct {
		and         bool
		left, right expr
	}
	binary struct {
		op          string
		left, right expr
	}
	concat     struct{ items []expr }
	comparison struct {
		first expr
		ops   []string
		rest  []expr
	}
	conditional struct{ test, yes, no expr } // no nil: undefined
	call        struct {
		of expr
		arguments
		line int
	}
	// filtered is a filter or a test; of nil is the text of a block.
	filtered struct {
		of   expr
		name string
		f    *function // nil: not known, an error when it is reached
		test bool
		arguments
		line int
	}
)

// arguments of a call.
type arguments struct {
	args         []expr
	names        []string // of keywords
	values       []expr
	star, double expr // *args and **kwargs
}

// Statements.
type (
	text   struct{ value string }
	output struct {
		value expr
		line  int
	}
	branch struct { // if, elif, else
		tests  []expr
		bodies [][]stmt
		other  []stmt
		line   int
	}
	loop struct {
		target    target
		over      expr
		test      expr // nil: none
		body      []stmt
		other     []stmt
		extended  bool // its body uses the variable "loop"
		recursive bool
		loopID    int
		line      int
	}
	assign struct {
		target target
		value  expr
		line   int
	}
	assignBlock struct {
		target target
		filter expr // on the text of the body; nil: none
		body   []stmt
		line   int
	}
	filterBlock struct {
		filter expr
		body   []stmt
		line   int
	}
	with struct {
		targets []target
		values  []expr
		body    []stmt
	}
	scoped     struct{ body []stmt }
	defineStmt struct {
		id int
		*macroDef
	}
	callBlock struct {
		call   *call
		caller *macroDef
	}
	loopControl struct{ signal signal }
)

// target is what is assigned to: a name, an attribute of a namespace, or a
// tuple of targets.
type target struct {
	id    int
	name  string
	attr  string // of the namespace in the variable
	tuple []target
	many  bool // a tuple
}

// macroDef is a macro, or the body of a call block.
type macroDef struct {
	name                     string
	params                   []target
	defaults                 []expr // of the last parameters
	body                     []stmt
	kwargs, varargs, caller  bool // the body uses these names
	kwargsID, varargsID, cID int
}
