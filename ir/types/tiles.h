// Tile registers (AMX): the operating system saves them for a process that has asked for them.
#pragma once

namespace fusejit {

// The processor multiplies tiles of bf16, and this process may use them: it asks at the first call.
bool may_use_tiles();

}  // namespace fusejit
