// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include "escape.hpp"
#include "exit_code.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ctime>

namespace holdfast::cli {
namespace {

using json = nlohmann::ordered_json;

json document() { return {{"version", 1}, {"at", rfc3339(std::chrono::system_clock::now())}}; }

// Labels may hold any bytes; what is not UTF-8 becomes U+FFFD.
std::string written(const json& value) {
  return visible_json(value.dump(-1, ' ', false, json::error_handler_t::replace)) + "\n";
}

json text_or_null(const std::string& text) { return text.empty() ? json{} : json(text); }

const char* word(lock_kind kind) {
  switch (kind) {
    case lock_kind::exclusive: return "exclusive";
    case lock_kind::shared: return "shared";
    case lock_kind::semaphore: return "semaphore";
  }
  return "exclusive";
}

const char* word(hold_mode mode) {
  switch (mode) {
    case hold_mode::exclusive: return "exclusive";
    case hold_mode::shared: return "shared";
    case hold_mode::permits: return "permits";
  }
  return "exclusive";
}

json fields_of(const holder_info& holder) {
  return {{"owner", holder.owner},
          {"token", holder.token.value()},
          {"ttl_ms", holder.ttl.count()},
          {"remaining_ms", holder.remaining.count()},
          {"held_ms", holder.held_for.count()},
          {"mode", word(holder.mode)},
          {"permits", holder.permits},
          {"breaking", holder.breaking}};
}

// The line of a quorum is not asked, nor is that of a key which is no lock's.
json line_of(const lock_info& info) {
  if (info.foreign || !info.nodes.empty()) return {{"waiting", nullptr}, {"waiters", nullptr}};
  json out{{"waiting", info.waiting}, {"waiters", json::array()}};
  for (const auto& waiter : info.waiters)
    out["waiters"].push_back({{"owner", waiter.owner},
                              {"waiting_ms", waiter.waiting.count()},
                              {"mode", word(waiter.mode)},
                              {"permits", waiter.permits}});
  return out;
}

json fields_of(const lock_info& info) {
  const bool is_ours = info.held && !info.foreign;  // Of a foreign holder only the remaining time is known.
  json out{{"name", info.name}, {"held", info.held}, {"foreign", info.foreign}};
  out["owner"] = is_ours ? json(info.owner) : json{};
  out["token"] = is_ours ? json(info.token.value()) : json{};
  out["ttl_ms"] = is_ours ? json(info.ttl.count()) : json{};
  out["remaining_ms"] = info.held && !info.endless ? json(info.remaining.count()) : json{};
  out["held_ms"] = is_ours ? json(info.held_for.count()) : json{};
  out["breaking"] = info.breaking;
  out["last_break"] = nullptr;
  if (info.last_break)
    out["last_break"] = {{"token", info.last_break->token.value()},
                         {"since_ms", info.last_break->since.count()},
                         {"by", info.last_break->by},
                         {"why", info.last_break->why}};
  out["quarantine_ms"] = info.quarantine.count();
  out.update(line_of(info));
  out["kind"] = word(info.kind);
  out["size"] = info.kind == lock_kind::semaphore ? json(info.size) : json{};
  out["permits_held"] = info.kind == lock_kind::exclusive ? json{} : json(info.permits_held);
  out["holders"] = json::array();
  for (const auto& holder : info.holders) out["holders"].push_back(fields_of(holder));
  out["nodes"] = json::array();
  for (const auto& node : info.nodes)
    out["nodes"].push_back({{"endpoint", node.endpoint},
                            {"holders", node.holders},
                            {"owner", text_or_null(node.owner)},
                            {"token", node.token ? json(node.token.value()) : json{}},
                            {"remaining_ms", node.token ? json(node.remaining.count()) : json{}},
                            {"quarantine_ms", node.quarantine.count()},
                            {"trouble", text_or_null(node.trouble)}});
  return out;
}

const char* word(finding::severity level) {
  switch (level) {
    case finding::severity::ok: return "ok";
    case finding::severity::warning: return "warning";
    case finding::severity::error: return "error";
  }
  return "error";
}

}  // namespace

std::string json_of(const lock_info& info) {
  auto out = document();
  out.update(fields_of(info));
  return written(out);
}

std::string json_of(const std::vector<lock_info>& locks) {
  auto out = document();
  out["locks"] = json::array();
  for (const auto& info : locks) {
    out["locks"].push_back(fields_of(info));
    // One server is not asked for it then (holdfast/info.hpp).
    if (info.nodes.empty()) out["locks"].back()["quarantine_ms"] = nullptr;
  }
  return written(out);
}

std::string json_of(const diagnosis& found) {
  auto out = document();
  out["endpoint"] = found.endpoint;
  out["server_version"] = text_or_null(found.server_version);
  out["role"] = text_or_null(found.role);
  out["mode"] = text_or_null(found.mode);
  out["eviction_policy"] = text_or_null(found.eviction_policy);
  out["quarantine_ms"] = found.quarantine.count();
  out["round_trip_median_us"] = found.round_trip_median.count();
  out["round_trip_max_us"] = found.round_trip_max.count();
  out["worst"] = word(found.worst());
  out["findings"] = json::array();
  for (const auto& f : found.findings)
    out["findings"].push_back(
        {{"level", word(f.level)}, {"code", text_or_null(f.code)}, {"what", f.what}, {"fix", text_or_null(f.fix)}});
  return written(out);
}

std::string json_of(const local_status& status) {
  auto out = document();
  out["directory"] = status.directory;
  out["socket"] = status.socket;
  out["running"] = status.running;
  out["pid"] = status.running ? json(status.pid) : json{};
  out["was_started"] = status.was_started;
  out["was_stopped"] = status.was_stopped;
  return written(out);
}

std::string json_of(const lab& servers, bool running) {
  auto out = document();
  out["uri"] = text_or_null(servers.uri);
  out["directory"] = servers.directory;
  out["running"] = running;
  out["nodes"] = json::array();
  for (const auto& node : servers.nodes)
    out["nodes"].push_back({{"address", node.address}, {"role", node.role}, {"pid", node.pid}});
  return written(out);
}

std::string json_of(const quorum_replacement& done) {
  auto out = document();
  out["uri"] = done.uri;
  out["generation"] = done.generation;
  out["closed"] = done.closed;
  out["opened"] = done.opened;
  out["away"] = done.away;
  out["waited_ms"] = done.waited.count();
  return written(out);
}

std::string json_of(const fault& what) {
  auto out = document();
  out["error"] = {{"code", text_or_null(what.code)},
                  {"cause", text_or_null(what.cause)},
                  {"message", what.text},
                  {"why", text_or_null(what.why)},
                  {"hint", text_or_null(what.fix)},
                  {"node", text_or_null(what.endpoint)},
                  {"server_text", text_or_null(what.server_text)},
                  {"exit", number(what.exit)}};
  return written(out);
}

std::string rfc3339(std::chrono::system_clock::time_point when) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(when.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t time = seconds.count();
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, (since - seconds).count());
}

}  // namespace holdfast::cli
