// SPDX-License-Identifier: Apache-2.0
#include "support/redis_connection.hpp"

#include <hiredis/hiredis.h>

namespace holdfast::test {
namespace {

timeval as_timeval(std::chrono::milliseconds time) {
  timeval value{};
  value.tv_sec = time.count() / 1000;
  value.tv_usec = time.count() % 1000 * 1000;
  return value;
}

answer convert(const redisReply* reply) {
  answer a;
  if (reply == nullptr) return a;
  switch (reply->type) {
    case REDIS_REPLY_NIL: a.what = answer::kind::nil; break;
    case REDIS_REPLY_INTEGER:
      a.what = answer::kind::integer;
      a.number = reply->integer;
      break;
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_STRING:
      a.what = answer::kind::text;
      a.text.assign(reply->str, static_cast<std::size_t>(reply->len));
      break;
    case REDIS_REPLY_ERROR:
      a.what = answer::kind::error;
      a.text.assign(reply->str, static_cast<std::size_t>(reply->len));
      break;
    case REDIS_REPLY_ARRAY:
      a.what = answer::kind::list;
      for (std::size_t i = 0; i < reply->elements; ++i) a.items.push_back(convert(reply->element[i]));
      break;
    default: break;
  }
  return a;
}

}  // namespace

void redis_connection::closer::operator()(redisContext* context) const { redisFree(context); }

redis_connection::redis_connection(const std::string& socket)
    : context_{redisConnectUnixWithTimeout(socket.c_str(), as_timeval(std::chrono::seconds{5}))} {
  set_patience(std::chrono::seconds{10});
}

redis_connection::redis_connection(int port)
    : context_{redisConnectWithTimeout("127.0.0.1", port, as_timeval(std::chrono::seconds{5}))} {
  set_patience(std::chrono::seconds{10});
}

redis_connection::~redis_connection() = default;
redis_connection::redis_connection(redis_connection&&) noexcept = default;
redis_connection& redis_connection::operator=(redis_connection&&) noexcept = default;

bool redis_connection::connected() const { return context_ && context_->err == 0; }

void redis_connection::set_patience(std::chrono::milliseconds patience) {
  if (context_ && context_->err == 0) redisSetTimeout(context_.get(), as_timeval(patience));
}

answer redis_connection::ask(const std::vector<std::string>& words) {
  if (!connected()) return {};
  std::vector<const char*> argv;
  std::vector<std::size_t> lengths;
  for (const auto& word : words) {
    argv.push_back(word.data());
    lengths.push_back(word.size());
  }
  const std::unique_ptr<void, decltype(&freeReplyObject)> reply{
      redisCommandArgv(context_.get(), static_cast<int>(argv.size()), argv.data(), lengths.data()), freeReplyObject};
  return convert(static_cast<const redisReply*>(reply.get()));
}

}  // namespace holdfast::test
