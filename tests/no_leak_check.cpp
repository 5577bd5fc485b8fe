// cuDNN leaks, and so does the NVRTC that it loads and unloads; the address sanitizer is to watch us, not them. For the
// programs that load cuDNN; everywhere else leaks are found.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
