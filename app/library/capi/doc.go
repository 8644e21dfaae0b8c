// Package capi exports package library to C: the functions of amk.h, which is the one place that documents them. It
// manages handles and copies data; what a model does is elsewhere. A panic becomes AMK_INTERNAL.
//
// It is copied into every launcher, where libamk.so is made of it; without cgo it is empty. It imports the standard
// library, text/chat, runtime/host, app/library, text/sampling and text/tokenizer, and must not import any
// other package of amkc.
package capi

import "amkc/app/library"

// Open opens a model for amk_open. The reference VM has another.
var Open func(dir string, gpu int) (*library.Model, error) = library.Open
