// SPDX-License-Identifier: Apache-2.0
// The only file that sees hiredis. Its reader parses; what a reply becomes and how large it may be is decided here.
//
// Values are not built through the parent pointers of hiredis's tasks but on a stack of our own: hiredis reports the
// elements of a reply in the order of the bytes, so an open array is finished when it has all of its elements. That
// keeps resp::value without a mutable inside. Nothing is allocated from a declared count (CVE-2021-32765's class).
#include "resp/reader.hpp"

#include "base/assert.hpp"

#include <hiredis/read.h>

#include <new>
#include <utility>
#include <vector>

namespace holdfast::resp {

namespace {

// What hiredis calls while it parses. `privdata` of every task is one of these.
struct builder {
  struct open_array {
    std::size_t missing;
    value::array elements;
  };

  limits most;
  std::vector<open_array> open{};
  value root{};
  const char* complaint = nullptr;  // Why we made hiredis stop.

  // hiredis only asks whether we could; any pointer that is not null says yes.
  void* take(value v) {
    while (!open.empty()) {
      open.back().elements.push_back(std::move(v));
      if (--open.back().missing > 0) return this;
      v = value{std::move(open.back().elements)};
      open.pop_back();
    }
    root = std::move(v);
    return this;
  }

  void* refuse(const char* why) {
    complaint = why;
    return nullptr;
  }
};

// A server that does not know a command repeats what came with it, and behind HELLO and AUTH that is the password.
std::string words_of(std::string text) {
  const auto arguments = text.find(", with args beginning with");
  if (arguments != std::string::npos) text.resize(arguments);
  if (text.empty()) text = "an error without words";
  return text;
}

builder& of(const redisReadTask* task) { return *static_cast<builder*>(task->privdata); }

// No exception may pass through hiredis's C frames.
template <class Body>
void* guarded(const redisReadTask* task, Body body) noexcept {
  try {
    return body(of(task));
  } catch (const std::bad_alloc&) {
    return of(task).refuse("no memory for the reply");
  }
}

void* create_string(const redisReadTask* task, char* text, std::size_t size) {
  return guarded(task, [&](builder& b) -> void* {
    std::string copy{text, size};
    if (task->type == REDIS_REPLY_STATUS) return b.take(status{std::move(copy)});
    if (task->type == REDIS_REPLY_ERROR) return b.take(server_error{words_of(std::move(copy))});
    // The whole bulk is buffered with the two bytes behind it, which hiredis skips unseen.
    if (text[size] != '\r' || text[size + 1] != '\n') return b.refuse("a bulk string that does not end where it says");
    return b.take(std::move(copy));
  });
}

void* create_array(const redisReadTask* task, int elements) {
  return guarded(task, [&](builder& b) -> void* {
    const auto count = static_cast<std::size_t>(elements);
    if (count > b.most.max_elements) return b.refuse("an array of more elements than we accept");
    if (count == 0) return b.take(value::array{});
    b.open.push_back({count, {}});
    return &b;
  });
}

void* create_integer(const redisReadTask* task, long long number) {
  return guarded(task, [&](builder& b) { return b.take(std::int64_t{number}); });
}

void* create_nil(const redisReadTask* task) {
  return guarded(task, [](builder& b) { return b.take(nil{}); });
}

redisReplyObjectFunctions functions{create_string, create_array, create_integer, create_nil, [](void*) {}};

struct free_parser {
  void operator()(redisReader* r) const noexcept { redisReaderFree(r); }
};

}  // namespace

struct reader::hidden {
  explicit hidden(limits most) : build{most}, parser{redisReaderCreateWithFunctions(&functions)} {
    if (!parser) throw std::bad_alloc{};
    parser->privdata = &build;
  }

  // Bytes that hiredis holds and has not used.
  std::size_t left() const { return parser->len - parser->pos; }

  void fail(const char* why) {
    failure = "not a reply we understand: ";
    failure += build.complaint ? build.complaint : why;
    parser.reset();
    build.open.clear();
  }

  builder build;
  std::unique_ptr<redisReader, free_parser> parser;
  std::size_t pending = 0;  // Bytes taken since the end of the last whole reply.
  std::string failure{};
};

reader::reader(limits most) : hidden_{std::make_unique<hidden>(most)} {}
reader::~reader() = default;
reader::reader(reader&&) noexcept = default;
reader& reader::operator=(reader&&) noexcept = default;

void reader::feed(std::string_view bytes) {
  auto& h = *hidden_;
  if (!h.failure.empty() || bytes.empty()) return;
  if (redisReaderFeed(h.parser.get(), bytes.data(), bytes.size()) != REDIS_OK) return h.fail(h.parser->errstr);
  h.pending += bytes.size();
}

std::optional<value> reader::next() {
  auto& h = *hidden_;
  if (!h.failure.empty()) return std::nullopt;
  void* reply = nullptr;
  if (redisReaderGetReply(h.parser.get(), &reply) != REDIS_OK) {
    h.fail(h.parser->errstr);
    return std::nullopt;
  }
  // A reply's size is checked when it is whole and while it is not, so that the split of its bytes never matters.
  const std::size_t size = reply ? h.pending - h.left() : h.pending;
  if (size > h.build.most.max_reply_bytes) {
    h.fail("a reply of more bytes than we accept");
    return std::nullopt;
  }
  if (!reply) return std::nullopt;
  HOLDFAST_ASSERT(h.build.open.empty());
  h.pending = h.left();
  return std::exchange(h.build.root, value{});
}

const std::string& reader::failure() const { return hidden_->failure; }

}  // namespace holdfast::resp
