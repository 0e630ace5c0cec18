// Code generated from src/*/*.h by gen. DO NOT EDIT.

package plan

const (
	pageTokens = 64
	stampEnds  = 8
	maxStamps  = 16384
	stampBytes = 24
	copyWords  = 4
)

type faultP struct {
	hang uint64
}

type hostCopyP struct {
	from  uintptr
	to    uintptr
	at    uintptr
	out   uintptr
	words int32
	calls int32
	in    int32
}

type clockP struct {
	ask    uintptr
	answer uintptr
	time   uintptr
	limit  uint64
	before uint32
	rounds uint32
}

const (
	mlaTile               = 32
	mlaBf16ClusterBlocks  = 16
	mlaBf16ClusterThreads = 256
	mlaBf16ClusterShared  = 176768
	mlaFp8ClusterThreads  = 256
	mlaFp8Cluster16Shared = 139776
	mlaFp8Cluster8Shared  = 231424
	mlaPersistentThreads  = 640
	mlaPersistentReach    = 2048
	mlaPersistentShared   = 228976
	mlaPersistentLeft     = 18432
)

type attendP struct {
	q       uintptr
	cache   uintptr
	pages   uintptr
	seq     uintptr
	pos     uintptr
	sel     uintptr
	part    uintptr
	y       uintptr
	at      uintptr
	m       int32
	k       int32
	nrope   int32
	heads   int32
	topk    int32
	splits  int32
	pagesLd int32
	ldq     int32
	ldy     int32
	scale   float32
}

type castP struct {
	cache uintptr
	out   uintptr
	at    uintptr
	slots int64
	k     int32
	nrope int32
}

const (
	maxRanks = 8
	rowParts = 8
	rowPairs = 4
)

const (
	sendPhase    = 1
	sumPhase     = 2
	receivePhase = 4
)

type commP struct {
	inbox  [8]uintptr
	half   uint64
	epoch  uintptr
	failed uintptr
	stop   uintptr
	limit  uint64
	x      uintptr
	y      uintptr
	w      uintptr
	res    uintptr
	at     uintptr
	panels uintptr
	m      int32
	n      int32
	ldx    int32
	ldy    int32
	ldr    int32
	row0   int32
	cols   int32
	rank   int32
	ranks  int32
	phases int32
	early  int32
	wide   int32
	eps    float32
}

type sumP struct {
	parts uintptr
	y     uintptr
	at    uintptr
	n     int64
	ranks int32
}

type barrierP struct {
	arrived uintptr
	epoch   uintptr
	failed  uintptr
	stop    uintptr
	at      uintptr
	limit   uint64
	ranks   int32
}

const (
	gemvRowBytes    = 576
	prefetchTiles   = 3
	prefetchThreads = 288
	prefetchColumns = 256
	prefetchSteps   = 2
	prefetchBars    = 128
	shortKColumns   = 128
	multiTileWidth  = 6
	multiTileSlots  = 4
	multiTileInbox  = 128
	clusterCalls    = 2
	clusterTiles    = 8
	clusterPanels   = 2
	clusterStages   = 3
)

type packP struct {
	data   uintptr
	scales uintptr
	out    uintptr
	rows   int32
	cols   int32
	tiles  int32
	kt     int32
}

type fp8BlockP struct {
	data   uintptr
	scales uintptr
	out    uintptr
	at     uintptr
	rows   int32
	cols   int32
	tiles  int32
	kt     int32
}

type gemmP struct {
	w        uintptr
	x        uintptr
	y        uintptr
	at       uintptr
	m        int32
	n        int32
	k        int32
	ldx      int32
	ldy      int32
	global   float32
	globalUp float32
	heads    int32
	xhead    int32
	yhead    int32
	whead    int64
	rope     uintptr
	pos      uintptr
	nrope    int32
}

type exactP struct {
	w       uintptr
	globals uintptr
	x       uintptr
	y       uintptr
	experts uintptr
	weights uintptr
	rope    uintptr
	pos     uintptr
	at      uintptr
	m       int32
	n       int32
	k       int32
	ldx     int32
	ldy     int32
	ldw     int32
	heads   int32
	xhead   int32
	yhead   int32
	nrope   int32
	topk    int32
	groups  int32
	byPair  int32
	global  float32
	wnext   int64
}

type gemvP struct {
	w      uintptr
	x      uintptr
	y      uintptr
	at     uintptr
	m      int32
	n      int32
	k      int32
	ldx    int32
	ldy    int32
	global float32
	heads  int32
	tiles  int32
	share  int32
	ring   int32
	xhead  int32
	yhead  int32
	whead  int64
	act    uintptr
	actAt  uintptr
	ldact  int32
}

type multiTileP struct {
	w      uintptr
	x      uintptr
	y      uintptr
	at     uintptr
	m      int32
	n      int32
	k      int32
	ldx    int32
	ldy    int32
	global float32
	tiles  int32
	share  int32
	width  int32
	slots  int32
}

type absorbP struct {
	w      uintptr
	x      uintptr
	y      uintptr
	at     uintptr
	rope   uintptr
	pos    uintptr
	whead  int64
	m      int32
	n      int32
	k      int32
	ldx    int32
	ldy    int32
	nrope  int32
	heads  int32
	tiles  int32
	xhead  int32
	yhead  int32
	early  int32
	global float32
}

type batchedGemmP struct {
	w      uintptr
	x      uintptr
	y      uintptr
	panels uintptr
	at     uintptr
	m      int32
	n      int32
	k      int32
	ldx    int32
	ldy    int32
	per    int32
	xhead  int32
	yhead  int32
	global float32
	whead  int64
	rope   uintptr
	pos    uintptr
	nrope  int32
	act    uintptr
	actAt  uintptr
	ldact  int32
	late   int32
}

type clusterGemmP struct {
	w      uintptr
	panels uintptr
	y      uintptr
	at     uintptr
	m      int32
	n      int32
	k      int32
	ldy    int32
	per    int32
	slices int32
	parts  int32
	tiles  int32
	until  int32
	global float32
}

type clusterGemmsP struct {
	p [2]clusterGemmP
}

type wgmmaP struct {
	w         uintptr
	x         uintptr
	sums      uintptr
	panels    uintptr
	y         uintptr
	at        uintptr
	m         int32
	n         int32
	k         int32
	ldx       int32
	ldy       int32
	per       int32
	blocks    int32
	groups    int32
	parts     int32
	global    float32
	globalUp  float32
	heads     int32
	xhead     int32
	yhead     int32
	whead     int64
	panelHead int64
	rope      uintptr
	pos       uintptr
	nrope     int32
	stages    int32
}

type fp4P struct {
	w         uintptr
	globals   uintptr
	codes     uintptr
	scales    uintptr
	experts   uintptr
	list      uintptr
	offsets   uintptr
	y         uintptr
	x         uintptr
	input     uintptr
	codesOut  uintptr
	scalesOut uintptr
	at        uintptr
	m         int32
	n         int32
	k         int32
	kt        int32
	ldx       int32
	ldy       int32
	topk      int32
	groups    int32
	byPair    int32
	wexpert   int64
}

type combine4P struct {
	rows    uintptr
	weights uintptr
	y       uintptr
	at      uintptr
	n       int32
	topk    int32
	ldw     int32
	ldy     int32
}

const (
	fp4Unit    = 576
	blockFrags = 8
	blockBytes = 2112
)

const (
	inRegisters     = 256
	routeMemory     = 14336
	upSlices        = 16
	wsK             = 6144
	wsThreads       = 640
	wsBytes         = 190704
	prologueBytes   = 28688
	prologueRows    = 8
	prologueTiles   = 3
	prologueK       = 256
	downAllSlots    = 18
	downAllExperts  = 256
	downAllRows     = 96
	downAllWarps    = 15
	downAllItem     = 6912
	downAllY        = 52
	downAllThere    = 74848
	wgmmaUpThreads  = 640
	wgmmaUpShared   = 222336
	wgmmaDownRows   = 64
	wgmmaDownRing   = 16
	wgmmaDownTile   = 272
	wgmma128Threads = 384
	wgmma128Shared  = 190544
	wgmma128Expert  = 36
)

type routeP struct {
	x       uintptr
	bias    uintptr
	experts uintptr
	weights uintptr
	at      uintptr
	m       int32
	n       int32
	topk    int32
	ldx     int32
	ldw     int32
	groups  int32
	keep    int32
	norm    int32
	scale   float32
}

type groupP struct {
	experts uintptr
	list    uintptr
	offsets uintptr
	at      uintptr
	pairs   int32
	groups  int32
}

type moeP struct {
	w       uintptr
	global  uintptr
	x       uintptr
	experts uintptr
	weights uintptr
	y       uintptr
	list    uintptr
	offsets uintptr
	scratch uintptr
	at      uintptr
	m       int32
	n       int32
	k       int32
	topk    int32
	groups  int32
	ldx     int32
	ldy     int32
	ldw     int32
	byPair  int32
	tokens  int32
	slots   int32
	early   int32
	wexpert int64
}

type prologueP struct {
	route  routeP
	shared gemvP
}

type moeUpP struct {
	moe      moeP
	prologue prologueP
}

type moeWgmmaP struct {
	w       uintptr
	global  uintptr
	x       uintptr
	rows    uintptr
	list    uintptr
	offsets uintptr
	y       uintptr
	at      uintptr
	m       int32
	n       int32
	k       int32
	topk    int32
	groups  int32
	ldx     int32
	byPair  int32
	per     int32
	row0    int32
	count   int32
	wexpert int64
}

const (
	embedded = 2048
)

type rowwiseP struct {
	x      uintptr
	y      uintptr
	w      uintptr
	b      uintptr
	rope   uintptr
	pos    uintptr
	idx    uintptr
	res    uintptr
	cache  uintptr
	at     uintptr
	m      int32
	n      int32
	k      int32
	ldx    int32
	ldy    int32
	ldr    int32
	nrope  int32
	heads  int32
	format int32
	eps    float32
}

type quantP struct {
	x       uintptr
	y       uintptr
	experts uintptr
	input   uintptr
	at      uintptr
	pairs   int32
	k       int32
	topk    int32
	ldx     int32
	byPair  int32
}

const (
	opGemvBf16 = 0
	opGemvFp8  = 1
	opNorm     = 2
	opLatent   = 3
	opKey      = 4
	opRotary   = 5
	opSilu     = 6
	opRoute    = 7
)

const (
	maxSegments = 4
)

type hfuseP struct {
	op     [4]int32
	until  [4]int32
	blocks [4]int32
	params [4][15]uint64
}

const (
	persistentCalls  = 2
	persistentTokens = 32
	persistentPitch  = 68
)

type persistentOneP struct {
	w      uintptr
	y      uintptr
	at     uintptr
	m      int32
	n      int32
	k      int32
	ldy    int32
	until  int32
	global float32
}

type persistentGemmP struct {
	one         persistentOneP
	two         persistentOneP
	panels      uintptr
	waiting     uintptr
	per         int32
	blocks      int32
	panelStages int32
	unitStages  int32
}

const (
	indexPagesSharedBf16 = 214016
	indexPagesSharedFp8  = 118784
	indexRowsShared      = 82944
	indexQueries         = 16512
	topStagedShared      = 109136
	topShared            = 43616
)

type indexP struct {
	q       uintptr
	hw      uintptr
	rope    uintptr
	cache   uintptr
	pages   uintptr
	seq     uintptr
	pos     uintptr
	scores  uintptr
	at      uintptr
	split   uintptr
	m       int32
	k       int32
	heads   int32
	nrope   int32
	span    int32
	pagesLd int32
	ldq     int32
	ldhw    int32
	lds     int32
	early   int32
	scale   float32
}

type topP struct {
	scores uintptr
	pos    uintptr
	sel    uintptr
	at     uintptr
	topk   int32
	lds    int32
	m      int32
	waits  int32
	absorb absorbP
}

const (
	alternatives = 20
	sampleSlices = 8
)

type params struct {
	temperature float32
	topP        float32
	minP        float32
	repetition  float32
	topK        int32
	logprobs    int32
	seen        int32
	last        int32
	seed        uint64
	counter     uint64
	presence    float32
	frequency   float32
	counts      int32
	mask        int32
	allowed     int32
	entries     int32
	biases      int32
	labels      int32
	forced      int32
	pad         int32
}

type entry struct {
	token int32
	after int32
	bias  float32
}

type sampled struct {
	token   int32
	logprob float32
	ids     [20]int32
	logps   [20]float32
}

type sampleP struct {
	logits     uintptr
	params     uintptr
	seen       uintptr
	counts     uintptr
	masks      uintptr
	entries    uintptr
	y          uintptr
	work       uintptr
	at         uintptr
	n          int32
	ld         int32
	seenBytes  int32
	maskBytes  int32
	countBytes int32
}

type feedP struct {
	last       uintptr
	from       uintptr
	rows       uintptr
	seq        uintptr
	pages      uintptr
	tokens     uintptr
	pos        uintptr
	slots      uintptr
	params     uintptr
	seen       uintptr
	counts     uintptr
	at         uintptr
	m          int32
	n          int32
	pagesLd    int32
	seenBytes  int32
	countBytes int32
}
