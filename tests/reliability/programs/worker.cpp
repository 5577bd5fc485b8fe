// A process that uses the cache on disk as any program does. Prints the hash of each result, then its counts as one
// line of JSON; what the log says goes to stderr.
//
//   worker compute FIRST COUNT [sealed]    computes small graphs, in that order
//   worker fork before|after|busy CHILDREN forks, and all compute the same 20 graphs
//   worker threads COUNT GRAPHS            the same graphs on each thread, in another order
//   worker soak SHAPES CYCLES              trains on that many shapes, over and over
// WORKER_THREADS: Options::threads.
//   worker crime WHAT 0 [sealed]           does what must be seen
//   worker write NUMBER COUNT BYTES        writes entries of its own straight into FUSEJIT_CACHE_DIR
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "fusejit/fusejit.h"
#include "ir/base/hash.h"
#include "runtime/disk/settings.h"
#include "tests/reliability/programs/forks.h"
#include "tests/reliability/programs/seal.h"
#include "tests/reliability/programs/soak.h"

namespace {

namespace fj = fusejit;

// A graph for each number, most of them of one kernel: shape and expression tell them apart.
fj::Tensor graph(int number) {
  const std::int64_t size = 3 + number;
  std::vector<float> values(static_cast<std::size_t>(size * 40));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) * 0.03F - 1;
  fj::Tensor x = fj::from_host(values, {size, 40});
  if (number % 4 == 3) {
    const fj::Tensor image = fj::reshape(x, {1, 1, size, 40});
    return fj::relu(fj::conv2d(image, fj::full({2, 1, 3, 3}, 0.25), fj::full({2}, 0.1)));
  }
  for (int n = number; n > 0; n /= 2) x = n % 2 ? fj::exp(x * -0.5) + 1 : fj::relu(x * x - 0.5);
  return fj::sum(x, {1});
}

std::string hash_of(int number) {
  const std::vector<float> values = graph(number).to_vector<float>();
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return fj::ir::hash_text(bytes).hex();
}

void print_counts() {
  const fj::Statistics s = fj::stats();
  std::printf("{\"plans_made\": %lld, \"plans_loaded\": %lld, \"kernels_compiled\": %lld, \"kernels_loaded\": %lld}\n",
              static_cast<long long>(s.plans_made), static_cast<long long>(s.plans_loaded),
              static_cast<long long>(s.kernels_compiled), static_cast<long long>(s.kernels_loaded));
}

void compute(int first, int count) {
  for (int number = first; number < first + count; ++number) {
    std::printf("%d %s\n", number, hash_of(number).c_str());
    std::fflush(stdout);
  }
  print_counts();
}

// False if a child hung, died or computed something else.
bool fork_and_compute(const std::string& when, int children) {
  return forks::run(when, children, 20, [](int first, int count) {
    std::string hashes;
    for (int number = first; number < first + count; ++number) hashes += hash_of(number) + "\n";
    return hashes;
  });
}

void compute_on_threads(int count, int graphs) {
  std::vector<std::vector<std::string>> hashes(static_cast<std::size_t>(count),
                                               std::vector<std::string>(static_cast<std::size_t>(graphs)));
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < graphs; ++i) {
        const int number = (i + t * 3) % graphs;
        hashes[static_cast<std::size_t>(t)][static_cast<std::size_t>(number)] = hash_of(number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_thread : hashes) {
    if (of_thread != hashes[0]) std::fprintf(stderr, "threads do not agree\n");
  }
  for (int number = 0; number < graphs; ++number)
    std::printf("%d %s\n", number, hashes[0][static_cast<std::size_t>(number)].c_str());
  print_counts();
}

void write(int number, int count, std::size_t bytes) {
  namespace disk = fj::runtime::disk;
  disk::DiskCacheOptions options = disk::cache_settings().options;
  options.stamp_seconds = 0;
  options.most.files = 500;
  disk::DiskCache cache(options);
  const auto key = [](int writer, int i) {
    return disk::CacheKey("kernel", {{"kernel", fmt::format("@k{} of {}", i, writer)}});
  };
  std::mt19937_64 random(static_cast<std::uint64_t>(number));
  std::string object(bytes, '\0');
  int hot = 0, rounds = 0;
  for (int i = 0; i < count; ++i) {
    for (char& byte : object) byte = static_cast<char>(random());
    cache.put(key(number, i), {{"object", object}});
    if (i % 10 != 9) continue;
    const bool found = cache.find(key(number, 0)).has_value();
    hot += found, ++rounds;
    if (!found) cache.put(key(number, 0), {{"object", object}});
  }
  std::printf("{\"stored\": %lld, \"evicted\": %lld, \"hot\": %d, \"rounds\": %d}\n",
              static_cast<long long>(cache.statistics().stored), static_cast<long long>(cache.statistics().evicted),
              hot, rounds);
}

// What the seal is for.
void commit(const std::string& crime) {
  const int both = PROT_READ | PROT_WRITE | PROT_EXEC;
  if (crime == "execve") ::execl("/bin/true", "true", nullptr);
  if (crime == "socket") ::close(::socket(AF_UNIX, SOCK_STREAM, 0));
  if (crime == "mmap") ::mmap(nullptr, 4096, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (crime == "mprotect") ::mprotect(::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096, both);
}

// Pages that are both writable and executable, in the end.
int open_pages() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(" rwx") != std::string::npos;
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return i < argc ? std::atoi(argv[i]) : 0; };
  const std::string what = argc > 1 ? argv[1] : "";
  fj::set_log(
      [](std::string_view line) { std::fprintf(stderr, "log: %.*s\n", static_cast<int>(line.size()), line.data()); });
  try {
    if (const char* threads = std::getenv("WORKER_THREADS")) fj::set_options({.threads = std::atoi(threads)});
    if (argc > 4 && std::string(argv[4]) == "sealed") seal();
    if (what == "compute") compute(number(2), number(3));
    if (what == "crime") commit(argv[2]);
    if (what == "fork" && !fork_and_compute(argv[2], number(3))) return 1;
    if (what == "threads") compute_on_threads(number(2), number(3));
    if (what == "soak") soak::run(number(2), number(3));
    if (what == "write") write(number(2), number(3), static_cast<std::size_t>(number(4)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return open_pages();
}
