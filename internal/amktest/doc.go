// Package amktest holds the tests of the AMK profile across packages: programs that AutoMegaKernel wrote, and native
// programs exported to the profile, are proved by validate and run by refvm against arithmetic written out in the
// tests.
//
// It has no code besides its tests, and nothing imports it. Its tests may import every package of amkc.
package amktest
