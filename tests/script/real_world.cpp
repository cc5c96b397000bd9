// SPDX-License-Identifier: Apache-2.0
#include "resp/reader.hpp"
#include "resp/writer.hpp"
#include "world.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace holdfast::tests {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 10s;

// One connection to the server's socket.
class connection {
public:
  explicit connection(const std::string& path) : socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() { close(); }

  bool is_open() const { return socket_ >= 0; }

  resp::value execute(const std::vector<std::string>& words) {
    std::string request;
    const std::vector<std::string_view> views{words.begin(), words.end()};
    resp::append_request(request, views);
    if (send(socket_, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      throw std::runtime_error{"the test's redis-server is gone"};
    }
    return read();
  }

  resp::value read() {
    for (;;) {
      if (auto reply = reader_.next()) return *std::move(reply);
      if (!reader_.failure().empty()) throw std::runtime_error{reader_.failure()};
      char bytes[4096];
      const auto count = recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) throw std::runtime_error{"the test's redis-server did not answer"};
      reader_.feed({bytes, static_cast<std::size_t>(count)});
    }
  }

private:
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  int socket_;
  resp::reader reader_{};
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in{text};
  return {std::istream_iterator<std::string>{in}, {}};
}

class real_world final : public world {
public:
  real_world(const std::string& rule, const std::string& lacks) : rule_{words_of(rule.empty() ? "~* &* +@all" : rule)} {
    char path[] = "/tmp/holdfast-script-XXXXXX";
    if (!mkdtemp(path)) throw std::runtime_error{"cannot make a directory in /tmp"};
    directory_ = path;
    start(lacks);
    if (!eventually([&] { return (operator_ = std::make_unique<connection>(directory_ + "/s"))->is_open(); })) {
      throw std::runtime_error{"redis-server does not come up"};
    }
    allow_all();
    user_ = std::make_unique<connection>(directory_ + "/s");
    if (!user_->execute({"AUTH", user_name, "secret"}).as_status()) throw std::runtime_error{"the user cannot log in"};
  }

  ~real_world() override {
    if (server_ > 0) {
      kill(server_, SIGTERM);
      waitpid(server_, nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  resp::value execute(const std::vector<std::string>& words) override { return operator_->execute(words); }
  resp::value execute_as_user(const std::vector<std::string>& words) override { return user_->execute(words); }

  server_time now() override {
    const auto reply = execute({"TIME"});
    const auto& parts = *reply.as_array();
    return server_time{std::chrono::seconds{std::stoll(*parts[0].as_bulk())} +
                       std::chrono::microseconds{std::stoll(*parts[1].as_bulk())}};
  }

  bool wait_until_gone(const std::string& key) override {
    return eventually([&] { return execute({"EXISTS", key}) == resp::value{std::int64_t{0}}; });
  }

  void listen(const std::string& channel) override {
    if (!listener_) listener_ = std::make_unique<connection>(directory_ + "/s");
    channel_ = channel;
    listener_->execute({is_sharded() ? "SSUBSCRIBE" : "SUBSCRIBE", channel});
  }
  void listen_to_all() override {
    monitor_ = std::make_unique<connection>(directory_ + "/s");
    monitor_->execute({"PSUBSCRIBE", "*"});
  }
  void end_listening() override {
    if (monitor_) {
      monitor_.reset();
      eventually([&] { return execute({"PUBSUB", "NUMPAT"}) == resp::value{std::int64_t{0}}; });
    }
    if (!listener_) return;
    listener_.reset();
    messages_.clear();
    for (const char* kind : {"CHANNELS", "SHARDCHANNELS"}) {
      eventually([&] { return execute({"PUBSUB", kind}) == resp::value{resp::value::array{}}; });
    }
  }
  // What is said is there when the answer to a later command is; the mark says where it ends.
  resp::value next_message() override {
    if (messages_.empty()) {
      execute({is_sharded() ? "SPUBLISH" : "PUBLISH", channel_, "mark"});
      for (;;) {
        auto text = listener_->read().as_array()->at(2);
        if (text == resp::value{std::string{"mark"}}) break;
        messages_.push_back(std::move(text));
      }
    }
    if (messages_.empty()) return {};
    auto first = messages_.front();
    messages_.erase(messages_.begin());
    return first;
  }
  void set_memory_full(bool full) override { execute({"CONFIG", "SET", "maxmemory", full ? "1" : "0"}); }
  void deny(const std::string& command) override { execute({"ACL", "SETUSER", user_name, "-" + command}); }

  void allow_all() override {
    std::vector<std::string> words{"ACL", "SETUSER", user_name, "on", ">secret"};
    words.insert(words.end(), rule_.begin(), rule_.end());
    if (!execute(words).as_status()) throw std::runtime_error{"the server does not take the ACL rule"};
  }

private:
  static constexpr const char* user_name = "app-lock";

  void start(const std::string& lacks) {
    const std::string socket = directory_ + "/s";
    std::vector<const char*> words{
        "redis-server",     "--port",    "0",        "--unixsocket", socket.c_str(), "--dir",
        directory_.c_str(), "--save",    "",         "--appendonly", "no",           "--loglevel",
        "warning",          "--logfile", "/dev/null"};
    if (!lacks.empty()) words.insert(words.end(), {"--rename-command", lacks.c_str(), "\"\""});
    words.push_back(nullptr);
    if (posix_spawnp(&server_, words[0], nullptr, nullptr, const_cast<char**>(words.data()), environ) != 0) {
      throw std::runtime_error{"cannot run redis-server"};
    }
  }

  // Waits for a condition, looking every few milliseconds until a deadline.
  template <class Condition>
  static bool eventually(Condition holds) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(2ms);
    }
    return true;
  }

  std::vector<std::string> rule_;
  std::string directory_{};
  pid_t server_ = -1;
  std::unique_ptr<connection> operator_{};
  std::unique_ptr<connection> user_{};
  bool is_sharded() const { return channel_.ends_with('}'); }

  std::unique_ptr<connection> listener_{};
  std::unique_ptr<connection> monitor_{};
  std::string channel_{};  // The last that it listens to.
  std::vector<resp::value> messages_{};
};

}  // namespace

std::unique_ptr<world> make_real_world(const std::string& rule, const std::string& lacks) try {
  return std::make_unique<real_world>(rule, lacks);
} catch (const std::exception& e) {
  std::fprintf(stderr, "no real server: %s\n", e.what());
  return nullptr;
}

}  // namespace holdfast::tests
