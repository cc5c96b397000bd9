// SPDX-License-Identifier: Apache-2.0
#include "net/name_service_testing.hpp"

#include <dlfcn.h>
#include <netdb.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::net {

namespace {

struct answer {
  int error = 0;
  std::vector<std::string> literals{};
};

struct entry {
  std::optional<answer> says{};
  int asked = 0;
  int hanging = 0;
};

std::mutex mutex;
std::condition_variable changed;
std::map<std::string, entry> known;

using look_up = int(const char*, const char*, const addrinfo*, addrinfo**);

look_up* real() {
  static auto* const found = reinterpret_cast<look_up*>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return found;
}

// As one list, which freeaddrinfo(3) takes apart again.
int list_of(const std::vector<std::string>& literals, const char* port, const addrinfo* how, addrinfo** found) {
  *found = nullptr;
  for (addrinfo** end = found; const auto& one : literals) {
    if (const int error = real()(one.c_str(), port, how, end)) return error;
    while (*end) end = &(*end)->ai_next;
  }
  return *found ? 0 : EAI_NONAME;
}

void say(const std::string& name, answer what) {
  const std::lock_guard held{mutex};
  known[name].says = std::move(what);
  changed.notify_all();
}

}  // namespace

made_up_name::made_up_name(std::string name) : name_{std::move(name)} {
  const std::lock_guard held{mutex};
  known[name_] = {};
}

made_up_name::~made_up_name() {
  std::unique_lock held{mutex};
  auto& mine = known[name_];
  if (!mine.says) mine.says = answer{.error = EAI_FAIL};
  changed.notify_all();
  changed.wait(held, [&] { return mine.hanging == 0; });
  known.erase(name_);
}

void made_up_name::has(std::vector<std::string> literals) { say(name_, {.literals = std::move(literals)}); }
void made_up_name::fails_with(int error) { say(name_, {.error = error}); }

bool made_up_name::was_asked(int times) {
  std::unique_lock held{mutex};
  return changed.wait_for(held, std::chrono::seconds{10}, [&] { return known[name_].asked >= times; });
}

int made_up_name::asked() const {
  const std::lock_guard held{mutex};
  return known[name_].asked;
}

}  // namespace holdfast::net

extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* how, addrinfo** found) {
  using namespace holdfast::net;
  std::unique_lock held{mutex};
  const bool is_name = host && !(how && (how->ai_flags & AI_NUMERICHOST));
  const auto here = is_name ? known.find(host) : known.end();
  if (here == known.end()) {
    held.unlock();
    return real()(host, port, how, found);
  }
  entry& asked = here->second;
  ++asked.asked;
  ++asked.hanging;
  changed.notify_all();
  changed.wait(held, [&] { return asked.says.has_value(); });
  const answer says = *asked.says;
  --asked.hanging;
  changed.notify_all();
  held.unlock();
  return says.error ? says.error : list_of(says.literals, port, how, found);
}
