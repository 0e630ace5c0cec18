package pipeline

// rowPlaces says of rows where something of theirs is. It takes 8 bytes a row of a
// stretch of rows, and gives the memory of stretches back.
type rowPlaces struct {
	chunks map[int64]*[placesChunk]int64
}

const placesChunk = 1024

// noPlace is the place of a finished row of which the journal has nothing: its error
// follows from the input.
const noPlace = -1

func (p *rowPlaces) get(row int64) int64 {
	if c := p.chunks[row/placesChunk]; c != nil {
		return c[row%placesChunk]
	}
	return 0
}

func (p *rowPlaces) set(row, place int64) {
	c := p.chunks[row/placesChunk]
	if c == nil {
		if place == 0 {
			return
		}
		if p.chunks == nil {
			p.chunks = map[int64]*[placesChunk]int64{}
		}
		c = &[placesChunk]int64{}
		p.chunks[row/placesChunk] = c
	}
	c[row%placesChunk] = place
}

// passed says that no row before this one is asked for any more.
func (p *rowPlaces) passed(row int64) {
	if row%placesChunk == 0 {
		delete(p.chunks, row/placesChunk-1)
	}
}
