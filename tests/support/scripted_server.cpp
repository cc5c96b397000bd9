// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_server.hpp"

#include "support/scratch_directory.hpp"

#include <openssl/sha.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <optional>
#include <thread>

namespace holdfast::test {
namespace {

struct peer {
  int fd;
  std::string unread{};
  bool gone = false;
};

// Takes one request off the front of `bytes`, an array of bulk strings; nullopt when it is not whole yet.
std::optional<std::vector<std::string>> take_request(std::string& bytes) {
  std::size_t at = 0;
  const auto number = [&](char type) -> std::optional<std::size_t> {
    const auto end = bytes.find("\r\n", at);
    if (end == std::string::npos || bytes[at] != type) return std::nullopt;
    const auto value = std::stoul(bytes.substr(at + 1, end - at - 1));
    at = end + 2;
    return value;
  };
  const auto count = number('*');
  if (!count) return std::nullopt;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto size = number('$');
    if (!size || bytes.size() < at + *size + 2) return std::nullopt;
    words.push_back(bytes.substr(at, *size));
    at += *size + 2;
  }
  bytes.erase(0, at);
  return words;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return text;
}

// What SCRIPT LOAD answers, so that a client which checks it goes on.
std::string sha1_hex(const std::string& text) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string hex;
  for (const unsigned byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace

struct scripted_server::hidden {
  scratch_directory scratch;
  script answers;
  int listener = -1;
  int stop = -1;
  std::list<peer> peers;
  std::thread thread;

  void serve(peer& who) {
    std::array<char, 65536> bytes;
    const auto count = ::recv(who.fd, bytes.data(), bytes.size(), 0);
    if (count <= 0) {
      who.gone = true;
      return;
    }
    who.unread.append(bytes.data(), static_cast<std::size_t>(count));
    while (auto request = take_request(who.unread)) {
      const auto reply = answers(*request);
      if (!reply.empty()) ::send(who.fd, reply.data(), reply.size(), MSG_NOSIGNAL);
    }
  }

  void run() {
    for (;;) {
      std::vector<pollfd> all{{stop, POLLIN, 0}, {listener, POLLIN, 0}};
      for (const auto& p : peers) all.push_back({p.fd, POLLIN, 0});
      ::poll(all.data(), all.size(), -1);
      if (all[0].revents != 0) break;
      std::size_t i = 2;
      for (auto& p : peers) {
        if (all[i++].revents != 0) serve(p);
      }
      if (all[1].revents != 0) peers.push_back({::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)});
      peers.remove_if([](const peer& p) {
        if (p.gone) ::close(p.fd);
        return p.gone;
      });
    }
    for (const auto& p : peers) ::close(p.fd);
  }
};

scripted_server::scripted_server(script answers) : hidden_{std::make_unique<hidden>()} {
  hidden_->answers = std::move(answers);
  hidden_->stop = ::eventfd(0, EFD_CLOEXEC);
  hidden_->listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (hidden_->scratch / "fake.sock").c_str(), sizeof address.sun_path - 1);
  ::bind(hidden_->listener, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::listen(hidden_->listener, 64);
  hidden_->thread = std::thread{[this] { hidden_->run(); }};
}

scripted_server::~scripted_server() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(hidden_->stop, &one, sizeof one);
  hidden_->thread.join();
  ::close(hidden_->listener);
  ::close(hidden_->stop);
}

std::string scripted_server::uri() const { return "redis+unix://" + (hidden_->scratch / "fake.sock"); }

scripted_server::script scripted_server::silence() {
  return [](const std::vector<std::string>&) { return std::string{}; };
}

scripted_server::script scripted_server::greets_and_answers_scripts_with(std::string answer) {
  return [answer = std::move(answer)](const std::vector<std::string>& words) -> std::string {
    const auto command = lower(words.front());
    if (command == "hello") {
      return "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:"
             "5\r\n"
             "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
    }
    if (command == "script" && lower(words.at(1)) == "exists") {
      std::string none = "*" + std::to_string(words.size() - 2) + "\r\n";
      for (std::size_t i = 2; i < words.size(); ++i) none += ":0\r\n";
      return none;
    }
    if (command == "script") return "$40\r\n" + sha1_hex(words.at(2)) + "\r\n";
    if (command == "time") return "*2\r\n$10\r\n1795217602\r\n$6\r\n501759\r\n";
    if (command == "info") return "$15\r\nrun_id:nobody\r\n\r\n";
    // It has forgotten nothing: what is asked in the greeting is not what a test is about.
    if (command == "eval" && words.at(3).ends_with("epoch")) return "$16\r\n1795217602501759\r\n";
    if (command == "evalsha" || command == "eval") return answer;
    return "+OK\r\n";
  };
}

}  // namespace holdfast::test
