// timeline: what happened when, from the graph to the last launch, for https://ui.perfetto.dev.
#include <fmt/format.h>

#include "fusejit/profile.h"
#include "runtime/profiler.h"
#include "tools/fusejit-dump/measure/running.h"

namespace fusejit::tools {

int timeline(const TimelineOptions& options, Invocation& invocation) {
  Profile profile;
  Source source = [&] {
    const runtime::ProfileScope scope("trace", options.source);
    return read_source(invocation, options);
  }();
  Running running(std::move(source), options, options.threads);
  running.prepare();
  for (int i = 0; i < options.steps; ++i) running.step();
  profile.stop();
  profile.trace(options.output);
  return put(profile.table(ProfileBy::phase));
}

}  // namespace fusejit::tools
