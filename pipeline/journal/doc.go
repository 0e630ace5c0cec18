// Package journal keeps records on disk in the order in which they came, so that
// they survive whatever ends the process.
//
// A [Journal] is a folder of files. A record has a key, which says until when it is
// needed, and bytes; its place is a position that stays its own. Each record is
// framed by its length and a checksum: what a crash tore is found and cut off when
// the journal is opened again, and what lies before it is kept.
//
// What [Journal.Append] took is in memory at first. It survives the process after
// [Journal.Flush] and the machine after a [Journal.Sync].
//
// Caveat: a journal is for one goroutine, and for one process: whoever owns the
// folder locks it.
package journal
