// Tests compile what they test, and leave the user's cache alone, unless they say where a cache is.
#include <cstdlib>

namespace {
[[maybe_unused]] const int kOff = ::setenv("FUSEJIT_CACHE", "off", 0);
}
