// Package loopsize holds the emitted sources to one size whatever the number of layers, and measures what looping saves
// (docs/results/looping.md). It is tests alone: nothing imports it.
package loopsize
