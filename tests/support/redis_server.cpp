// SPDX-License-Identifier: Apache-2.0
#include "support/redis_server.hpp"

#include "support/eventually.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {
namespace {

// The letter of its state in /proc, 'T' when it stands still.
char state_of(int pid) {
  std::ifstream stat{"/proc/" + std::to_string(pid) + "/stat"};
  std::string text;
  std::getline(stat, text);
  const auto end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() ? text[end + 2] : '?';
}

}  // namespace

int free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port = ntohs(address.sin_port);
  }
  ::close(listener);
  return port;
}

redis_server::redis_server(redis_options options)
    : options_{std::move(options)}, socket_{scratch_ / "redis.sock"}, listens_at_{socket_}, admin_{std::string{}} {
  // Somebody else may take the port between our look and the server's bind; then another one will do.
  for (int attempt = 0; attempt < 5; ++attempt) {
    port_ = options_.tcp ? free_port() : options_.at_port;
    if (!options_.tls_directory.empty()) tls_port_ = free_port();
    if (!launch()) continue;
    if (options_.is_declared) declare_nothing_forgotten();
    return;
  }
  std::ifstream log{scratch_ / "redis.log"};
  throw std::runtime_error("redis-server did not start: " +
                           std::string{std::istreambuf_iterator<char>{log}, std::istreambuf_iterator<char>{}});
}

bool redis_server::launch() {
  {
    std::ofstream config{scratch_ / "redis.conf"};
    config << "bind 127.0.0.1\nport " << port_ << "\nunixsocket " << listens_at_ << "\ndir " << scratch_.path()
           << "\nsave \"\"\nappendonly no\nenable-debug-command local\n";
    if (!options_.password.empty()) config << "requirepass " << options_.password << '\n';
    if (tls_port_ != 0) {
      config << "tls-port " << tls_port_ << "\ntls-cert-file " << options_.tls_directory << "/tls.pem\ntls-key-file "
             << options_.tls_directory << "/tls.key\ntls-ca-cert-file " << options_.tls_directory
             << "/ca.pem\ntls-auth-clients optional\n";
    }
    for (const auto& line : options_.config) config << line << '\n';
  }
  child_process::options how;
  how.environment = options_.environment;
  how.log_file = scratch_ / "redis.log";
  how.pipes = false;
  process_ = child_process{{"redis-server", scratch_ / "redis.conf"}, how};
  const bool ready = eventually(
      [&] {
        admin_ = connect();
        const auto pong = admin_("PING");
        return pong == std::string{"PONG"} || !process_.running();
      },
      10s);
  return ready && process_.running();
}

redis_server::~redis_server() {
  if (paused_) resume();
  if (!options_.keys_may_stay && process_.running()) {
    for (const auto& key : keys_without_expiry()) ADD_FAILURE() << "C8: key without an expiry: " << key;
  }
}

std::string redis_server::unix_uri(int database) const {
  return "redis+unix://" + socket_ + (database != 0 ? "?db=" + std::to_string(database) : "");
}

std::string redis_server::tcp_uri(int database) const {
  return "redis://127.0.0.1:" + std::to_string(port_) + (database != 0 ? "/" + std::to_string(database) : "");
}

redis_connection redis_server::connect() const {
  redis_connection connection{listens_at_};
  if (!options_.password.empty()) connection("AUTH", options_.password);
  return connection;
}

answer redis_server::ask(const std::vector<std::string>& words) {
  if (!admin_.connected()) admin_ = connect();
  auto result = admin_.ask(words);
  if (result.what == answer::kind::none && process_.running()) {  // CLIENT KILL, timeout 1 and the like met us.
    admin_ = connect();
    result = admin_.ask(words);
  }
  return result;
}

std::int64_t redis_server::info(const std::string& field) {
  std::istringstream lines{ask({"INFO", "everything"}).text};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1));
  }
  return -1;
}

std::int64_t redis_server::scripts_run() {
  std::istringstream lines{ask({"INFO", "commandstats"}).text};
  std::int64_t calls = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("cmdstat_eval")) calls += std::stoll(line.substr(line.find("calls=") + 6));
  }
  return calls;
}

void redis_server::pause() {
  paused_ = true;
  process_.signal(SIGSTOP);
  eventually([&] { return state_of(pid()) == 'T'; });
}

void redis_server::resume() {
  paused_ = false;
  process_.signal(SIGCONT);
}

void redis_server::kill() {
  process_.signal(SIGKILL);
  process_.wait();
}

void redis_server::restart() {
  ::unlink(socket_.c_str());
  if (!launch()) throw std::runtime_error("redis-server did not start again");
}

void redis_server::restart_undoubted() {
  ::unlink(socket_.c_str());
  listens_at_ = socket_ + ".new";
  if (!launch()) throw std::runtime_error("redis-server did not start again");
  declare_nothing_forgotten();
  ::rename(listens_at_.c_str(), socket_.c_str());
  listens_at_ = socket_;
}

void redis_server::lose_all_locks() {
  ask({"EVAL", "for _, k in ipairs(redis.call('KEYS', '*')) do if k ~= 'hf:epoch' then redis.call('DEL', k) end end",
       "0"});
}

void redis_server::declare_nothing_forgotten(int database, const std::string& prefix) {
  std::ifstream file{HOLDFAST_EPOCH_SCRIPT};
  const std::string text{std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
  auto connection = connect();
  connection("SELECT", std::to_string(database));
  const auto said = connection("EVAL", text, "1", prefix + "epoch", "0", "first");
  if (text.empty() || said.is_error())
    throw std::runtime_error("the server's first start cannot be said: " + said.text);
  connection("CONFIG", "RESETSTAT");  // Tests count what clients send.
}

std::vector<std::string> redis_server::keys_without_expiry(const std::string& prefix) {
  std::vector<std::string> found;
  auto connection = connect();
  for (int database = 0; database < 16; ++database) {
    if (connection("SELECT", std::to_string(database)).is_error()) break;
    std::string cursor = "0";
    do {
      const auto page = connection("SCAN", cursor, "MATCH", prefix + "*", "COUNT", "1000");
      if (page.items.size() != 2) break;
      cursor = page.items[0].text;
      for (const auto& key : page.items[1].items) {
        if (connection("PTTL", key.text) == -1) found.push_back(key.text);
      }
    } while (cursor != "0");
  }
  return found;
}

}  // namespace holdfast::test
