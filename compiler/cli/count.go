package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"amkc/app/front"
)

// counts is the value of a flag that takes several numbers with commas, from 0 on. A repeated flag adds to them.
type counts struct {
	values *[]int
	given  bool
	hi     int
	plain  bool // numbers that count nothing, such as token ids, take no suffix
}

func newCounts(values *[]int, def []int) *counts {
	*values = def
	return &counts{values: values, hi: math.MaxInt}
}

// newIDs is newCounts for token ids.
func newIDs(values *[]int) *counts {
	return &counts{values: values, hi: math.MaxInt32, plain: true}
}

func (c *counts) String() string {
	words := make([]string, len(*c.values))
	for i, n := range *c.values {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

func (c *counts) Type() string { return "ints" }

func (c *counts) Set(s string) error {
	var list []int
	for i, word := range strings.Split(s, ",") {
		n, err := c.one(word)
		if err != nil {
			return fmt.Errorf("number %d of the list is %q; %w", i+1, word, err)
		}
		list = append(list, n)
	}
	if !c.given {
		*c.values, c.given = nil, true
	}
	*c.values = append(*c.values, list...)
	return nil
}

func (c *counts) one(word string) (int, error) {
	if !c.plain {
		return front.ParseCount(word, 0, c.hi)
	}
	n, err := strconv.Atoi(strings.TrimSpace(word))
	if err != nil || n < 0 || n > c.hi {
		return 0, errors.New("want token ids with commas, as 1,2,3")
	}
	return n, nil
}

// maxAmount is the largest amount.
const maxAmount = math.MaxInt32

// An amount is the value of a flag that takes a number from 0 to maxAmount, whole or not.
type amount struct{ value *float64 }

func newAmount(value *float64) *amount { return &amount{value} }

func (a *amount) String() string { return strconv.FormatFloat(*a.value, 'g', -1, 64) }
func (a *amount) Type() string   { return "number" }

func (a *amount) Set(s string) error {
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(x >= 0 && x <= maxAmount) {
		return fmt.Errorf("want a number from 0 to %d, as 24 or 22.5", maxAmount)
	}
	*a.value = x
	return nil
}
