package amk

import "amkc/ir/diag"

const (
	maxTiles        = 64 // of one projection
	minTileRows     = 16 // unless N_tile asks for less
	defaultTileRows = 32
	maxShards       = 8
	minKeysPerShard = 16 // on average
)

// knobs are what a configuration changes in a program.
type knobs struct {
	rows       int // of a tile, before the bounds of tileRows
	partitions int // shards asked for
}

func readKnobs(c *Config) (knobs, *diag.Diagnostic) {
	base, d := knob(c, "gemv", "base_width", defaultTileRows)
	if d != nil {
		return knobs{}, d
	}
	rows, d := knob(c, "gemv", "N_tile", max(minTileRows, base))
	if d != nil {
		return knobs{}, d
	}
	partitions, d := knob(c, "attention", "n_partitions", 1)
	return knobs{rows, partitions}, d
}

// knob returns the integer tiling.GROUP.NAME of a configuration, which may be nil.
func knob(c *Config, group, name string, absent int) (int, *diag.Diagnostic) {
	if c == nil {
		return absent, nil
	}
	v, ok := c.Tiling.Get(group)
	if !ok {
		return absent, nil
	}
	values, ok := v.(*Object)
	if !ok {
		return 0, diag.Errorf(codeRequest, "request", "config.tiling.%s must be an object of integers", group)
	}
	if _, ok := values.Get(name); !ok {
		return absent, nil
	}
	n, ok := values.Int(name)
	if !ok {
		return 0, diag.Errorf(codeRequest, "request", "config.tiling.%s.%s must be an integer of 64 bits", group, name)
	}
	return int(n), nil
}

// tileRows returns the rows of one tile of a projection with n rows. The last tile may be narrower.
func (k knobs) tileRows(n int) int {
	rows := max(1, min(k.rows, n))
	if ceilDiv(n, rows) > maxTiles {
		rows = ceilDiv(n, maxTiles)
	}
	return rows
}

// shards returns the number of split-KV shards; 1 is plain attention.
func (b *builder) shards() int {
	sms := unknownNumSMs
	if b.Target != nil {
		sms = b.Target.NumSMs
	}
	if b.Batch > 1 {
		return 1
	}
	return max(1, min(maxShards, sms, b.knobs.partitions, ceilDiv(b.kvLen, minKeysPerShard)))
}
