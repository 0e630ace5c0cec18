// Package stores reads and writes object stores by URL: s3://, gs:// and azblob://,
// with the options in the query that gocloud.dev documents (endpoint, region,
// use_path_style and so on), and credentials from where each provider's own tools
// find them.
//
// An [Object] is read by ranges, with bounded memory. A [Mirror] keeps a folder and a
// prefix alike: a job works in the folder, and its finished files are uploaded.
// What may pass is tried again: refusals for load, connections that end, bodies that
// stand still. What will not pass (no such object, no permission) is said at once.
package stores
