package driver

import "unsafe"

// api holds the driver's entry points, bound by [openLibrary]. The tag is the exported symbol: the _v2 names are those
// that cuda.h maps the plain names to, and the plain ones would be the 32-bit interface of CUDA 3. Handles (context,
// module, function, stream, event) are opaque pointers of the driver and travel as uintptr, so that Go never looks
// behind them. A tag ending in ",optional" may be missing, and the field then stays nil.
type api struct {
	Init             func(flags uint32) result                                   `cu:"cuInit"`
	DriverGetVersion func(version *int32) result                                 `cu:"cuDriverGetVersion"`
	GetErrorName     func(code result, text *unsafe.Pointer) result              `cu:"cuGetErrorName"`
	GetErrorString   func(code result, text *unsafe.Pointer) result              `cu:"cuGetErrorString"`
	DeviceGetCount   func(count *int32) result                                   `cu:"cuDeviceGetCount"`
	DeviceGet        func(dev *int32, ordinal int32) result                      `cu:"cuDeviceGet"`
	DeviceGetName    func(name *byte, length int32, dev int32) result            `cu:"cuDeviceGetName"`
	DeviceTotalMem   func(bytes *uintptr, dev int32) result                      `cu:"cuDeviceTotalMem_v2"`
	PCIBus           func(id *byte, length int32, dev int32) result              `cu:"cuDeviceGetPCIBusId"`
	DeviceAttribute  func(value *int32, attribute int32, dev int32) result       `cu:"cuDeviceGetAttribute"`
	PrimaryRetain    func(ctx *uintptr, dev int32) result                        `cu:"cuDevicePrimaryCtxRetain"`
	PrimaryRelease   func(dev int32) result                                      `cu:"cuDevicePrimaryCtxRelease_v2"`
	CtxSetCurrent    func(ctx uintptr) result                                    `cu:"cuCtxSetCurrent"`
	MemGetInfo       func(free, total *uintptr) result                           `cu:"cuMemGetInfo_v2"`
	MemAlloc         func(p *Ptr, bytes uintptr) result                          `cu:"cuMemAlloc_v2"`
	MemFree          func(p Ptr) result                                          `cu:"cuMemFree_v2"`
	MemHostAlloc     func(p *unsafe.Pointer, bytes uintptr, flags uint32) result `cu:"cuMemHostAlloc"`
	MemFreeHost      func(p unsafe.Pointer) result                               `cu:"cuMemFreeHost"`
	MemHostDevicePtr func(p *Ptr, host unsafe.Pointer,
		flags uint32) result `cu:"cuMemHostGetDevicePointer_v2"`
	MemcpyHtoDAsync func(dst Ptr, src unsafe.Pointer, bytes uintptr, stream uintptr) result `cu:"cuMemcpyHtoDAsync_v2"`
	MemcpyDtoHAsync func(dst unsafe.Pointer, src Ptr, bytes uintptr, stream uintptr) result `cu:"cuMemcpyDtoHAsync_v2"`
	MemsetD8Async   func(p Ptr, value byte, count uintptr, stream uintptr) result           `cu:"cuMemsetD8Async"`
	MemsetD32Async  func(p Ptr, value uint32, count uintptr, stream uintptr) result         `cu:"cuMemsetD32Async"`

	ModuleLoadDataEx func(mod *uintptr, image unsafe.Pointer, n uint32, options *int32,
		values *jitValues) result `cu:"cuModuleLoadDataEx"`
	ModuleUnload      func(mod uintptr) result `cu:"cuModuleUnload"`
	ModuleGetFunction func(f *uintptr, mod uintptr,
		name string) result `cu:"cuModuleGetFunction"`
	ModuleGetGlobal func(p *Ptr, bytes *uintptr, mod uintptr,
		name string) result `cu:"cuModuleGetGlobal_v2"`
	FuncGetAttribute func(value *int32, attribute int32,
		f uintptr) result `cu:"cuFuncGetAttribute"`
	FuncSetAttribute func(f uintptr, attribute int32,
		value int32) result `cu:"cuFuncSetAttribute"`
	FuncGetParamInfo func(f uintptr, index uintptr, offset,
		size *uintptr) result `cu:"cuFuncGetParamInfo,optional"`
	Occupancy func(blocks *int32, f uintptr, blockSize int32,
		dynamicShared uintptr) result `cu:"cuOccupancyMaxActiveBlocksPerMultiprocessor"`

	LaunchKernel func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, params,
		extra *unsafe.Pointer) result `cu:"cuLaunchKernel"`
	LaunchCooperativeKernel func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr,
		params *unsafe.Pointer) result `cu:"cuLaunchCooperativeKernel"`

	StreamCreate      func(s *uintptr, flags uint32) result                `cu:"cuStreamCreate"`
	StreamDestroy     func(s uintptr) result                               `cu:"cuStreamDestroy_v2"`
	StreamSynchronize func(s uintptr) result                               `cu:"cuStreamSynchronize"`
	StreamQuery       func(s uintptr) result                               `cu:"cuStreamQuery"`
	EventCreate       func(e *uintptr, flags uint32) result                `cu:"cuEventCreate"`
	EventDestroy      func(e uintptr) result                               `cu:"cuEventDestroy_v2"`
	EventRecord       func(e uintptr, stream uintptr) result               `cu:"cuEventRecord"`
	EventSynchronize  func(e uintptr) result                               `cu:"cuEventSynchronize"`
	EventQuery        func(e uintptr) result                               `cu:"cuEventQuery"`
	EventElapsedTime  func(ms *float32, start uintptr, end uintptr) result `cu:"cuEventElapsedTime"`
}
