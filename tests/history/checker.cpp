// SPDX-License-Identifier: Apache-2.0
#include "history/checker.hpp"

#include "history/fenced_mutex.hpp"
#include "history/reentrant_mutex.hpp"
#include "history/semaphore.hpp"
#include "history/shared_mutex.hpp"

#include <algorithm>
#include <map>
#include <sstream>

namespace holdfast::test::history {
namespace {

std::map<std::string, operations> by_name(const operations& all) {
  std::map<std::string, operations> parts;
  for (const auto& one : all) parts[one.name].push_back(one);
  for (auto& [name, part] : parts) {
    std::stable_sort(part.begin(), part.end(),
                     [](const operation& a, const operation& b) { return a.called < b.called; });
  }
  return parts;
}

void count(const steps& of, verdict& into) {
  for (const auto& one : of.required) {
    if (one.what == deed::take) ++into.holds;
    if (one.what == deed::busy) ++into.busy;
  }
  for (const auto& one : of.optional) {
    if (one.what == deed::end && one.of->what != verb::drop && one.of->what != verb::unlock) ++into.ends_of_leases;
  }
}

}  // namespace

found search_one(const steps& of, const lock_kind& kind, instant give_up_at) {
  switch (kind.what) {
    case lock_kind::is::fenced_mutex: return search{of, fenced_mutex{}, give_up_at}.run();
    case lock_kind::is::reentrant_mutex: return search{of, reentrant_mutex{}, give_up_at}.run();
    case lock_kind::is::semaphore: return search{of, semaphore{kind.size}, give_up_at}.run();
    case lock_kind::is::shared_mutex: return search{of, shared_mutex{}, give_up_at}.run();
  }
  return {};
}

verdict check(const operations& all, const lock_kind& kind, std::chrono::seconds limit) {
  const auto began = boottime();
  const instant give_up_at = (began + limit).count();
  verdict result;
  result.operations = static_cast<int>(all.size());
  for (const auto& [name, part] : by_name(all)) {
    const steps of = steps_of(part);
    count(of, result);
    ++result.locks;
    const found one = search_one(of, kind, give_up_at);
    result.tried += one.tried;
    if (one.what == answer::refused && result.what != answer::refused) {
      result.explanation = "lock '" + name + "':\n" + explain(part, kind, give_up_at);
    }
    if (one.what == answer::refused || result.what == answer::linearizable) result.what = one.what;
  }
  result.took = boottime() - began;
  return result;
}

std::string to_string(const verdict& one) {
  std::ostringstream line;
  line << (one.what == answer::linearizable ? "linearizable"
           : one.what == answer::refused    ? "REFUSED"
                                            : "UNDECIDED")
       << ": " << one.operations << " operations on " << one.locks << " locks, " << one.holds << " holds, "
       << one.ends_of_leases << " that nobody released, " << one.busy << " busy that had to be true; " << one.tried
       << " search steps in " << std::chrono::ceil<std::chrono::milliseconds>(one.took).count() << " ms";
  return line.str();
}

}  // namespace holdfast::test::history
