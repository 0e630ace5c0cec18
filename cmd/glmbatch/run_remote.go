package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"glmbatch/datasets"
	"glmbatch/pipeline"
	"glmbatch/stores"
)

// remoteOut is an output folder in an object store. The job works in a folder of this
// machine; what is finished there is uploaded while it runs, the manifest at its start
// and its end, and _SUCCESS last.
type remoteOut struct {
	url, dir string
	mirror   stores.Mirror
	old      []stores.Entry // what is there before the job begins
	quit     chan struct{}
	ended    chan struct{}
}

// uploadEvery is how often finished files are looked for.
const uploadEvery = 5 * time.Second

// workDir is the folder of this machine for what is at a URL.
func (r *runFlags) workDir(kind, url string) (string, error) {
	root := r.work
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: give --work-dir", err)
		}
		root = filepath.Join(cache, "glmbatch")
	}
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(root, kind, hex.EncodeToString(sum[:8])), nil
}

// openRemote makes the folder of this machine what the job left at --out, whichever
// machine ran it; nil: --out is no URL.
func (r *runFlags) openRemote(ctx context.Context) (*remoteOut, error) {
	if !stores.IsURL(r.out) {
		return nil, nil
	}
	url := r.out
	if r.rows.Shards > 1 {
		url = stores.Join(url, filepath.ToSlash(datasets.Shard{Index: r.rows.Shard, Of: r.rows.Shards}.Dir()))
	}
	dir, err := r.workDir("work", url)
	if err != nil {
		return nil, err
	}
	r.remoteDir = dir
	o := &remoteOut{url: url, dir: dir, mirror: stores.Mirror{Dir: dir, URL: url,
		Last: []string{datasets.ManifestFile, datasets.SuccessFile}, Late: datasets.JournalDir}}
	if o.old, err = stores.List(ctx, url); err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(o.old, func(e stores.Entry) bool { return e.Key == name })
	}
	if len(o.old) > 0 && !has(datasets.ManifestFile) {
		return nil,
			fmt.Errorf("%s has %s but no _manifest.json, so it is not an output of glmbatch; choose another --out",
				url, o.old[0].Key)
	}
	if r.overwrite {
		return o, nil
	}
	if len(o.old) == 0 {
		return o, r.remoteShards(ctx)
	}
	there, err := o.updated(ctx)
	if err != nil {
		return nil, err
	}
	// another machine went on with it
	if here := updatedAt(filepath.Join(dir, datasets.ManifestFile)); here.Before(there) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		return o, o.mirror.Pull(ctx)
	}
	if err := o.mirror.Compare(o.old); err != nil {
		return nil, err
	}
	// the job was done, but not all of it uploaded
	if _, err := os.Stat(filepath.Join(dir, datasets.SuccessFile)); err == nil {
		return o, o.mirror.Finish(ctx)
	}
	return o, nil
}

// updated is when the manifest at the URL was written.
func (o *remoteOut) updated(ctx context.Context) (at time.Time, err error) {
	err = withManifest(ctx, o.url, func(dir string) { at = updatedAt(filepath.Join(dir, datasets.ManifestFile)) })
	return at, err
}

// withManifest calls f with a folder that has the manifest of the job at a URL.
func withManifest(ctx context.Context, url string, f func(dir string)) error {
	temp, err := datasets.NewTemporary()
	if err != nil {
		return err
	}
	defer temp.Remove()
	err = stores.Download(ctx, stores.Join(url, datasets.ManifestFile), filepath.Join(temp.Dir, datasets.ManifestFile))
	if err == nil {
		f(temp.Dir)
	}
	return err
}

// remoteShards looks for another shard of the job at --out that has begun: how long a
// sequence may be is one for all of them.
func (r *runFlags) remoteShards(ctx context.Context) error {
	if r.rows.Shards <= 1 {
		return nil
	}
	there, err := stores.List(ctx, stores.Join(r.out, datasets.ShardsDir))
	if err != nil {
		return err
	}
	for _, e := range there {
		name, ok := strings.CutSuffix(e.Key, "/"+datasets.ManifestFile)
		if s, is := datasets.ParseShard(name); !ok || !is || s.Of != r.rows.Shards {
			continue
		}
		url := stores.Join(r.out, datasets.ShardsDir+"/"+name)
		err := withManifest(ctx, url, func(dir string) { r.others = begunShard{pipeline.ContextOf(dir), url} })
		if err != nil || r.others.context > 0 {
			return err
		}
	}
	return nil
}

// begunShard is one that has begun: how many positions its sequences have, and where it is.
type begunShard struct {
	context int
	from    string
}

// updatedAt is a manifest's time; zero where there is none.
func updatedAt(path string) time.Time {
	var m struct {
		Updated time.Time `json:"updated"`
	}
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, &m) != nil {
		return time.Time{}
	}
	return m.Updated
}

// begin removes what --overwrite is to remove, uploads what is here, and then what
// the job finishes, until finish.
func (o *remoteOut) begin(ctx context.Context, overwrite bool) error {
	if o == nil {
		return nil
	}
	if overwrite {
		slices.Reverse(o.old) // the manifest, which says whose they are, goes last
		slices.SortStableFunc(o.old, func(a, b stores.Entry) int {
			last := func(e stores.Entry) int { return strings.Count(datasets.ManifestFile, e.Key) }
			return last(a) - last(b)
		})
		for _, e := range o.old {
			if err := stores.Delete(ctx, e.URL); err != nil {
				return err
			}
		}
	}
	if err := o.mirror.Finish(ctx); err != nil {
		return err
	}
	o.quit, o.ended = make(chan struct{}), make(chan struct{})
	go func() {
		tick := time.NewTicker(uploadEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// What fails now is tried again, and said in the end if it stays so.
				_ = o.mirror.Push(context.WithoutCancel(ctx))
			case <-o.quit:
				close(o.ended)
				return
			}
		}
	}()
	return nil
}

// finish uploads the rest, however the job ended. The folder of a complete job is
// removed: all of it is at the URL.
func (o *remoteOut) finish(ctx context.Context) error {
	if o == nil || o.quit == nil { // nothing was run
		return nil
	}
	close(o.quit)
	<-o.ended
	if err := o.mirror.Finish(context.WithoutCancel(ctx)); err != nil {
		return withCode(exitOutput, fmt.Errorf("%w; what the job did is in %s: run the same command again to go on",
			err, o.dir))
	}
	if _, err := os.Stat(filepath.Join(o.dir, datasets.SuccessFile)); err == nil {
		return os.RemoveAll(o.dir)
	}
	return nil
}

// localModel downloads a checkpoint that --model names by URL, or what of it is not
// here yet.
func (r *runFlags) localModel(ctx context.Context, say *speaker) error {
	if !stores.IsURL(r.model) {
		return nil
	}
	dir, err := r.workDir("models", r.model)
	if err != nil {
		return err
	}
	say.line("fetching %s into %s", r.model, dir)
	m := stores.Mirror{Dir: dir, URL: r.model}
	if err := m.Pull(ctx); err != nil {
		return withCode(exitInput, fmt.Errorf("model %s: %w", r.model, err))
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return withCode(exitInput, fmt.Errorf("model %s: there are no objects below it", r.model))
	}
	r.modelURL, r.model = r.model, dir
	return nil
}
