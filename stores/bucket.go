package stores

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
)

// Schemes are those of the URLs that can be read and written.
var Schemes = []string{"s3", "gs", "azblob"}

// IsURL reports whether a path is a URL of an object store.
func IsURL(path string) bool {
	scheme, _, ok := strings.Cut(path, "://")
	return ok && slices.Contains(Schemes, strings.ToLower(scheme))
}

// Join is the URL of what lies below a URL.
func Join(base, name string) string {
	path, query, _ := strings.Cut(base, "?")
	path = strings.TrimSuffix(path, "/") + "/" + name
	if query != "" {
		path += "?" + query
	}
	return path
}

// place is a key, or a prefix of keys, in an open bucket.
type place struct {
	bucket *blob.Bucket
	name   string // the bucket's URL, for Join
	key    string
}

// buckets stay open until the process ends, as connections of HTTP do: each has a
// client with its connections and credentials.
var buckets struct {
	sync.Mutex
	open map[string]*blob.Bucket
}

// find opens the bucket of a URL.
func find(ctx context.Context, raw string) (place, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return place{}, fmt.Errorf("%s: not a URL such as s3://bucket/key", raw)
	}
	// Keys are as they stand in the URL: % and spaces have no other meaning.
	_, rest, _ := strings.Cut(raw, "://")
	rest, _, _ = strings.Cut(rest, "?")
	_, key, _ := strings.Cut(rest, "/")
	name := strings.ToLower(u.Scheme) + "://" + u.Host
	if u.RawQuery != "" {
		name += "?" + u.RawQuery
	}
	buckets.Lock()
	defer buckets.Unlock()
	b := buckets.open[name]
	if b == nil {
		if b, err = blob.OpenBucket(ctx, quietly(u)); err == nil {
			b, err = withLog(ctx, b, u)
		}
		if err != nil {
			return place{}, fmt.Errorf("opening %s: %w", name, err)
		}
		if buckets.open == nil {
			buckets.open = map[string]*blob.Bucket{}
		}
		buckets.open[name] = b
	}
	return place{b, name, key}, nil
}

// quietly is a bucket's URL with what keeps its client from writing a line to standard
// error for each range that it reads: ranges have no checksum.
func quietly(u *url.URL) string {
	bucket := url.URL{Scheme: strings.ToLower(u.Scheme), Host: u.Host, RawQuery: u.RawQuery}
	if q := u.Query(); bucket.Scheme == "s3" && !q.Has("response_checksum_validation") {
		q.Set("response_checksum_validation", "when_required")
		bucket.RawQuery = q.Encode()
	}
	return bucket.String()
}

// Entry is an object in a list.
type Entry struct {
	Key     string // below the prefix that was listed
	URL     string
	Size    int64
	ModTime int64 // ns since 1970
}

// maxObjects bounds a list.
const maxObjects = 1 << 20

// List lists the objects below a URL, in the order of their keys' bytes.
func List(ctx context.Context, raw string) ([]Entry, error) {
	p, err := find(ctx, raw)
	if err != nil {
		return nil, err
	}
	prefix := strings.TrimSuffix(p.key, "/") + "/"
	if p.key == "" {
		prefix = ""
	}
	var all []Entry
	token := blob.FirstPageToken
	for {
		var page []*blob.ListObject
		var next []byte
		err := again(ctx, "listing "+raw, func(ctx context.Context) (err error) {
			page, next, err = p.bucket.ListPage(ctx, token, 1000, &blob.ListOptions{Prefix: prefix})
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			if strings.HasSuffix(o.Key, "/") && o.Size == 0 { // stands for a folder
				continue
			}
			all = append(all, Entry{strings.TrimPrefix(o.Key, prefix), Join(p.name, o.Key), o.Size,
				o.ModTime.UnixNano()})
		}
		if len(all) > maxObjects {
			return nil, fmt.Errorf("%s has more than %d objects: name less", raw, maxObjects)
		}
		if next == nil {
			break
		}
		token = next
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// Exists reports whether there is an object at a URL.
func Exists(ctx context.Context, raw string) (ok bool, err error) {
	p, err := find(ctx, raw)
	if err != nil || p.key == "" {
		return false, err
	}
	err = again(ctx, "looking for "+raw, func(ctx context.Context) (err error) {
		ok, err = p.bucket.Exists(ctx, p.key)
		return err
	})
	return ok, err
}

// Delete removes an object; it need not be there.
func Delete(ctx context.Context, raw string) error {
	p, err := find(ctx, raw)
	if err != nil {
		return err
	}
	err = again(ctx, "removing "+raw, func(ctx context.Context) error { return p.bucket.Delete(ctx, p.key) })
	if missing(err) {
		return nil
	}
	return err
}
