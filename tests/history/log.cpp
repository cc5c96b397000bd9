// SPDX-License-Identifier: Apache-2.0
#include "history/log.hpp"

#include "support/eventually.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace holdfast::test::history {

log::log(const std::string& path)
    : fd_{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600)} {
  if (fd_ < 0) throw std::runtime_error("no log at " + path);
}

log::~log() { ::close(fd_); }

void log::write(const std::string& line) const {
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::runtime_error("the log cannot be written");
  }
}

int log::called(verb what, int thread, int hold, const std::string& name, int part, std::int64_t ttl_ms) {
  const int number = next_++;
  std::ostringstream line;
  line << "call " << boottime().count() << ' ' << number << ' ' << static_cast<int>(what) << ' ' << thread << ' '
       << hold << ' ' << part << ' ' << ttl_ms << ' ' << name << '\n';
  write(line.str());
  return number;
}

void log::returned(int number, outcome how, std::uint64_t token) {
  std::ostringstream line;
  line << "return " << boottime().count() << ' ' << number << ' ' << static_cast<int>(how) << ' ' << token << '\n';
  write(line.str());
}

void log::stands_until(int hold, instant until) {
  std::ostringstream line;
  line << "until " << boottime().count() << ' ' << hold << ' ' << until << '\n';
  write(line.str());
}

operations read_log(const std::string& path, int worker, bool through_faults) {
  std::ifstream file{path};
  std::map<int, operation> by_number;
  std::map<int, int> begun_by;  // Hold: the number of the call that acquired it.
  for (std::string line; std::getline(file, line) && !file.eof();) {
    std::istringstream words{line};
    std::string word;
    instant at = 0;
    int number = 0, what = 0;
    words >> word >> at >> number;
    if (word == "call") {
      operation& one = by_number[number];
      one.worker = worker;
      one.through_faults = through_faults;
      one.called = at;
      words >> what >> one.thread >> one.hold >> one.part >> one.ttl_ms >> one.name;
      one.what = static_cast<verb>(what);
      if (one.what == verb::attempt || one.what == verb::acquire) begun_by[one.hold] = number;
    } else if (word == "return") {
      operation& one = by_number.at(number);
      one.returned = at;
      words >> what >> one.token;
      one.how = static_cast<outcome>(what);
    } else if (word == "until") {
      instant until = 0;
      words >> until;
      operation& one = by_number.at(begun_by.at(number));
      one.until = std::max(one.until, until);
    }
    if (words.fail()) throw std::runtime_error("not a line of a history: " + line);
  }
  operations all;
  for (auto& [number, one] : by_number) all.push_back(std::move(one));
  return all;
}

}  // namespace holdfast::test::history
