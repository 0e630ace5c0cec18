// Package metrics says how far a job is in Prometheus's format: over HTTP, and in a
// file for node_exporter's textfile collector. [Table] has what there is; a [Job] has
// the values. A job that is not asked for them makes none of it.
package metrics
