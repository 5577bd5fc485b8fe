// FUSEJIT_STATS=1: a line when the process ends.
#pragma once

namespace fusejit {

// Once the first session is made. Does nothing unless asked.
void say_statistics_at_exit();

}  // namespace fusejit
