/* A libcuda.so.1 for machines without one: a driver that works and has no device. cuDNN's runtime-compiled engines are
   planned only where a driver can be loaded, though planning needs nothing of it; loaded into the process under this
   soname before cuDNN is used, this one lets them be planned on any machine. Nothing can be run with it. */
enum { SUCCESS = 0, NO_DEVICE = 100 };

int cuDeviceGetCount(int* count) {
  *count = 0;
  return SUCCESS;
}

#define WITHOUT_DEVICE(name) \
  int name(void) { return NO_DEVICE; }

/* What cuDNN 9 looks up. */
WITHOUT_DEVICE(cuInit)
WITHOUT_DEVICE(cuDriverGetVersion)
WITHOUT_DEVICE(cuGetErrorName)
WITHOUT_DEVICE(cuGetErrorString)
WITHOUT_DEVICE(cuDeviceGet)
WITHOUT_DEVICE(cuDeviceGetAttribute)
WITHOUT_DEVICE(cuDevicePrimaryCtxRetain)
WITHOUT_DEVICE(cuDevicePrimaryCtxRelease)
WITHOUT_DEVICE(cuDevicePrimaryCtxReset)
WITHOUT_DEVICE(cuCtxGetCurrent)
WITHOUT_DEVICE(cuCtxGetDevice)
WITHOUT_DEVICE(cuCtxGetLimit)
WITHOUT_DEVICE(cuCtxPushCurrent)
WITHOUT_DEVICE(cuCtxPopCurrent)
WITHOUT_DEVICE(cuStreamGetCtx)
WITHOUT_DEVICE(cuStreamSynchronize)
WITHOUT_DEVICE(cuMemcpyDtoH_v2)
WITHOUT_DEVICE(cuModuleLoadData)
WITHOUT_DEVICE(cuModuleLoadDataEx)
WITHOUT_DEVICE(cuModuleLoadFatBinary)
WITHOUT_DEVICE(cuModuleGetFunction)
WITHOUT_DEVICE(cuModuleGetGlobal_v2)
WITHOUT_DEVICE(cuModuleUnload)
WITHOUT_DEVICE(cuLibraryLoadData)
WITHOUT_DEVICE(cuLibraryLoadFromFile)
WITHOUT_DEVICE(cuLibraryGetKernel)
WITHOUT_DEVICE(cuLibraryUnload)
WITHOUT_DEVICE(cuKernelGetAttribute)
WITHOUT_DEVICE(cuKernelSetAttribute)
WITHOUT_DEVICE(cuFuncGetAttribute)
WITHOUT_DEVICE(cuFuncSetAttribute)
WITHOUT_DEVICE(cuLaunchKernel)
WITHOUT_DEVICE(cuLaunchKernelEx)
WITHOUT_DEVICE(cuLaunchCooperativeKernel)
WITHOUT_DEVICE(cuLinkCreate)
WITHOUT_DEVICE(cuLinkCreate_v2)
WITHOUT_DEVICE(cuLinkAddData)
WITHOUT_DEVICE(cuLinkAddData_v2)
WITHOUT_DEVICE(cuLinkAddFile_v2)
WITHOUT_DEVICE(cuLinkComplete)
WITHOUT_DEVICE(cuLinkDestroy)
WITHOUT_DEVICE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
WITHOUT_DEVICE(cuOccupancyMaxPotentialClusterSize)
WITHOUT_DEVICE(cuTensorMapEncodeTiled)
WITHOUT_DEVICE(cuTensorMapEncodeIm2col)
