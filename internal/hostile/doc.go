// Package hostile tests the promise of amkc for hostile files: any bytes get a verdict or a clean error, in
// time and memory that are linear in the file. Its tests fuzz the whole way from bytes to verdict, and generate files
// of 10 MB that each press on one budget.
//
// It has no code besides its tests, and nothing imports it. Its tests may import every package of amkc.
package hostile
