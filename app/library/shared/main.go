// Command shared is libamk.so, if it is built with -buildmode=c-shared: the functions of package capi, on a GPU. It is
// copied into every launcher, imports app/library/capi, and must not import any other package of amkc.
package main

import _ "amkc/app/library/capi"

func main() {}
