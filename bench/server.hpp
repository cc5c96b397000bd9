// SPDX-License-Identifier: Apache-2.0
// The server as the yardsticks see it: hiredis, blocking, the least work that anybody can do on Redis.
#pragma once

#include <holdfast/client.hpp>

#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace bench {

inline void must(bool fact, const std::string& what) {
  if (fact) return;
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

inline bool is_port(const std::string& where) { return where.front() != '/'; }

inline std::string uri_of(const std::string& where) {
  return (is_port(where) ? "redis://127.0.0.1:" : "redis+unix://") + where;
}

// The release of the least lock that there is: `SET key value NX PX` is its acquire.
constexpr const char* compare_and_delete =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

inline holdfast::client make_client(const std::string& where, const holdfast::client_options& how = {}) {
  return holdfast::client{uri_of(where), how};
}

class hiredis {
public:
  explicit hiredis(const std::string& where)
      : context_{is_port(where) ? redisConnect("127.0.0.1", std::atoi(where.c_str()))
                                : redisConnectUnix(where.c_str())} {
    must(context_ && context_->err == 0, "hiredis cannot connect");
  }

  redisContext* get() const { return context_.get(); }

  // The text of the reply, or its number as text.
  std::string ask(const std::vector<std::string>& words) const {
    send(words);
    return receive();
  }
  void send(const std::vector<std::string>& words) const {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const auto& w : words) {
      texts.push_back(w.data());
      lengths.push_back(w.size());
    }
    redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), lengths.data());
  }
  std::string receive() const {
    void* got = nullptr;
    must(redisGetReply(context_.get(), &got) == REDIS_OK, "hiredis: no reply");
    const std::unique_ptr<redisReply, free_reply> reply{static_cast<redisReply*>(got)};
    must(reply->type != REDIS_REPLY_ERROR, reply->str ? reply->str : "hiredis: an error");
    if (reply->type == REDIS_REPLY_INTEGER) return std::to_string(reply->integer);
    return reply->str ? std::string{reply->str, reply->len} : std::string{};
  }

  // Of `INFO section`, the number behind `field`, or behind what follows that.
  double info(const std::string& section, const std::string& field, const std::string& then = {}) const {
    const std::string text = ask({"INFO", section});
    const auto at = text.find(field);
    const auto from = at == std::string::npos ? at : text.find(then, at + field.size());
    return from == std::string::npos ? 0 : std::atof(text.c_str() + from + then.size());
  }
  double cpu_seconds() const { return info("cpu", "used_cpu_user:") + info("cpu", "used_cpu_sys:"); }
  double wire_bytes() const {
    return info("stats", "total_net_input_bytes:") + info("stats", "total_net_output_bytes:");
  }
  // Of the commands themselves, without what it takes to read them, answer and sleep, in microseconds.
  double commands_took() const {
    return info("commandstats", "cmdstat_evalsha:calls=", ",usec=") +
           info("commandstats", "cmdstat_set:calls=", ",usec=");
  }
  double scripts_run() const { return info("commandstats", "cmdstat_evalsha:calls="); }

private:
  struct close_context {
    void operator()(redisContext* c) const { redisFree(c); }
  };
  struct free_reply {
    void operator()(redisReply* r) const { freeReplyObject(r); }
  };
  std::unique_ptr<redisContext, close_context> context_;
};

}  // namespace bench
