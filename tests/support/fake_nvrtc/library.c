// An NVRTC that compiles nothing, of the version that the environment says (FAKE_NVRTC_MAJOR).
#include <stdlib.h>

int nvrtcVersion(int* major, int* minor) {
  const char* said = getenv("FAKE_NVRTC_MAJOR");
  *major = said ? atoi(said) : 0;
  *minor = 2;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
int nvrtcGetSupportedArchs(int* list) { return *list = 90, 0; }
int nvrtcCreateProgram(void) { return 1; }
int nvrtcDestroyProgram(void) { return 1; }
int nvrtcCompileProgram(void) { return 1; }
int nvrtcGetProgramLogSize(void) { return 1; }
int nvrtcGetProgramLog(void) { return 1; }
int nvrtcGetPTXSize(void) { return 1; }
int nvrtcGetPTX(void) { return 1; }
int nvrtcGetCUBINSize(void) { return 1; }
int nvrtcGetCUBIN(void) { return 1; }
const char* nvrtcGetErrorString(int result) { return result ? "as the fake says" : "success"; }
