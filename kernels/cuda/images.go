//go:build cuda

package cuda

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

// The compiled kernels, one image a source file; make kernels writes them.
//
//go:embed images/*.fatbin
var images embed.FS

// loadImages loads the kernels once for all ranks of the group on a GPU.
func (d *device) loadImages(mates []*device) error {
	loaded := slices.Clone(mates)
	for _, l := range d.group.options.like {
		if r, ok := l.(*device); ok {
			loaded = append(loaded, r)
		}
	}
	for _, r := range loaded {
		if r.gpu == d.gpu {
			d.funcs = r.funcs
			return nil
		}
	}
	from := d.group.options.images
	if from == nil {
		from = images
	}
	limit := int(d.target.Shared)
	for i := range plan.Images {
		if err := d.loadImage(&plan.Images[i], from, limit); err != nil {
			return err
		}
	}
	for n, f := range d.funcs {
		if err := driver.PreferShared(f); err != nil {
			return fmt.Errorf("%w: kernel %s: %w", kernels.ErrDevice, n, err)
		}
	}
	for _, n := range []string{"hfuse_1", "hfuse_8"} {
		if err := driver.MaxShared(d.funcs[n], plan.HFuseShared(limit)); err != nil {
			return fmt.Errorf("%w: shared memory for %s: %w", kernels.ErrDevice, n, err)
		}
	}
	return nil
}

// loadImage loads the kernels of one image, and allows them what they need.
func (d *device) loadImage(image *plan.Image, from fs.FS, limit int) error {
	data, err := fs.ReadFile(from, "images/"+image.Name+".fatbin")
	if err != nil {
		return err
	}
	m, err := cu.LoadFatBinary(string(data))
	if err != nil {
		return fmt.Errorf("%w: load the kernels of image %s: %w", kernels.ErrDevice, image.Name, driver.Of(err))
	}
	for _, n := range image.Entries() {
		if d.funcs[n], err = m.Function(n); err != nil {
			return fmt.Errorf("%w: kernel %s of image %s: %w", kernels.ErrDevice, n, image.Name, err)
		}
	}
	for n := range strings.FieldsSeq(image.Large) {
		if err := driver.MaxShared(d.funcs[n], limit); err != nil {
			return fmt.Errorf("%w: shared memory for %s: %w", kernels.ErrDevice, n, err)
		}
	}
	for _, n := range image.Entries() {
		switch {
		case image.Latent && limit < plan.LatentShared: // nor has such a GPU clusters of 16 blocks
			delete(d.funcs, n)
		case image.Wide:
			if err := driver.LargeClusters(d.funcs[n]); err != nil {
				return fmt.Errorf("%w: clusters of %s: %w", kernels.ErrDevice, n, err)
			}
		}
	}
	return nil
}
