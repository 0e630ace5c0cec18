package report

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"slices"
)

// Field numbers of Perfetto's trace protocol, as its protos/perfetto/trace define
// them. Only what a TrackEvent trace needs is here.
const (
	tracePacket = 1

	packetTimestamp  = 8
	packetSequence   = 10
	packetEvent      = 11
	packetInterned   = 12
	packetFlags      = 13
	packetDescriptor = 60

	flagCleared = 1 // interned texts start anew
	flagNeeds   = 2 // the packet uses interned texts

	trackUUID     = 1
	trackName     = 2
	trackProcess  = 3
	trackParent   = 5
	trackOrdering = 11
	trackRank     = 12
	orderExplicit = 3

	processPID  = 1
	processName = 6

	eventCategory = 3
	eventFact     = 4
	eventType     = 9
	eventName     = 10
	eventTrack    = 11
	sliceBegin    = 1
	sliceEnd      = 2

	factName    = 1
	factInt     = 4
	factTextIID = 17

	internedCategories = 1
	internedEventNames = 2
	internedFactNames  = 3
	internedTexts      = 29
	internedIID        = 1
	internedText       = 2
)

// message is a protobuf message while it is written.
type message []byte

func (m *message) varint(field int, v uint64) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3)
	*m = binary.AppendUvarint(*m, v)
}

func (m *message) bytes(field int, b []byte) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|2)
	*m = binary.AppendUvarint(*m, uint64(len(b)))
	*m = append(*m, b...)
}

// writePerfetto writes a Perfetto trace: a track for each rank, below it one for
// each lane, and a begin and an end for each span, in order of time.
func writePerfetto(w io.Writer, t *tracks) error {
	p := &perfetto{w: bufio.NewWriterSize(w, 1<<20), tracks: t}
	p.descriptors()
	for _, e := range p.edges() {
		p.edge(e)
	}
	return p.w.Flush()
}

type perfetto struct {
	w      *bufio.Writer
	tracks *tracks
	packet message
	// What has been interned, by the field of InternedData.
	interned map[int]map[string]uint64
	fresh    message // InternedData of the next packet
	begun    bool
}

const sequence = 1

// laneUUID and processUUID identify tracks.
func laneUUID(i int32) uint64      { return 1<<32 + uint64(i) }
func processUUID(pid int32) uint64 { return 1<<33 + uint64(uint32(pid)) }

func (p *perfetto) flush() {
	var m message
	m.bytes(tracePacket, p.packet)
	p.w.Write(m)
	p.packet = p.packet[:0]
}

func (p *perfetto) descriptors() {
	t := p.tracks
	for i := range t.lanes {
		l := &t.lanes[i]
		pid, name := t.process(l.rank)
		if l.number == 1 {
			var process, track message
			process.varint(processPID, uint64(pid))
			process.bytes(processName, []byte(name))
			track.varint(trackUUID, processUUID(pid))
			track.bytes(trackProcess, process)
			track.varint(trackOrdering, orderExplicit)
			p.describe(track)
		}
		var track message
		track.varint(trackUUID, laneUUID(int32(i)))
		track.bytes(trackName, []byte(l.title()))
		track.varint(trackParent, processUUID(pid))
		track.varint(trackRank, uint64(l.number))
		p.describe(track)
	}
}

func (p *perfetto) describe(track message) {
	p.packet.varint(packetSequence, sequence)
	p.packet.bytes(packetDescriptor, track)
	p.flush()
}

// edge is the begin or the end of a span.
type edge struct {
	at    int64
	event int32
	begin bool
}

// edges returns all begins and ends by time. At one time, ends come before
// begins, inner ends before outer ones and outer begins before inner ones; a span
// without length begins and ends after what ends there.
func (p *perfetto) edges() []edge {
	t := p.tracks
	list := make([]edge, 0, 2*len(t.events))
	for i := range t.events {
		list = append(list, edge{t.events[i].Start, int32(i), true}, edge{t.events[i].End, int32(i), false})
	}
	kind := func(e edge) int {
		empty := t.events[e.event].Start == t.events[e.event].End
		switch {
		case empty:
			return 1
		case e.begin:
			return 2
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b edge) int {
		if c := cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(kind(a), kind(b))); c != 0 {
			return c
		}
		switch kind(a) {
		case 0: // the one that began last ends first
			return cmp.Compare(b.event, a.event)
		case 1: // a begin and an end of one span stay as they are
			return cmp.Compare(a.event, b.event)
		}
		return cmp.Compare(a.event, b.event) // sorted by start, longer first
	})
	return list
}

func (p *perfetto) edge(e edge) {
	t := p.tracks
	x := &t.events[e.event]
	var event message
	event.varint(eventTrack, laneUUID(x.lane))
	if e.begin {
		event.varint(eventType, sliceBegin)
		event.varint(eventName, p.intern(internedEventNames, t.label(x)))
		event.varint(eventCategory, p.intern(internedCategories, t.names.Name(x.Class)))
		for _, a := range t.arguments(x) {
			var fact message
			fact.varint(factName, p.intern(internedFactNames, a.name))
			if a.text != "" {
				fact.varint(factTextIID, p.intern(internedTexts, a.text))
			} else {
				fact.varint(factInt, uint64(a.number))
			}
			event.bytes(eventFact, fact)
		}
	} else {
		event.varint(eventType, sliceEnd)
	}
	flags := uint64(flagNeeds)
	if !p.begun {
		flags |= flagCleared
		p.begun = true
	}
	p.packet.varint(packetTimestamp, uint64(e.at-t.start))
	p.packet.varint(packetSequence, sequence)
	p.packet.varint(packetFlags, flags)
	if len(p.fresh) > 0 {
		p.packet.bytes(packetInterned, p.fresh)
		p.fresh = p.fresh[:0]
	}
	p.packet.bytes(packetEvent, event)
	p.flush()
}

// intern returns the number of a text, which the packet defines if it is new.
func (p *perfetto) intern(field int, text string) uint64 {
	if p.interned == nil {
		p.interned = map[int]map[string]uint64{}
	}
	known := p.interned[field]
	if known == nil {
		known = map[string]uint64{}
		p.interned[field] = known
	}
	if n, ok := known[text]; ok {
		return n
	}
	n := uint64(len(known) + 1)
	known[text] = n
	var m message
	m.varint(internedIID, n)
	m.bytes(internedText, []byte(text))
	p.fresh.bytes(field, m)
	return n
}
