// SPDX-License-Identifier: Apache-2.0
// Which sentence, reason and way out stand for which error of the library: the texts of docs/errors.md. Apart from
// message.cpp, which only prints them.
#include "acl_rule.hpp"
#include "duration.hpp"
#include "escape.hpp"
#include "fault_pieces.hpp"
#include "message.hpp"

#include <fmt/format.h>

#include <system_error>

namespace holdfast::cli {
namespace {

const fault_row* row_of(errc cause) {
  for (const auto& row : fault_table())
    if (row.cause == cause) return &row;
  return nullptr;
}

// No list has plain keys: they cannot be told from any other key.
std::string way_to_look(const pieces& p, const fault_context& context) {
  return context.plain ? fmt::format("look again: holdfast show {}", p.lock_argument)
                       : fmt::format("who holds what: holdfast ls{}", p.server_argument);
}

sentences for_request(errc cause, const pieces& p, const error& e, const fault_context& context) {
  const bool is_too_long = context.lock.size() > 512;
  switch (cause) {
    case errc::invalid_name:
      if (p.bare_subject.empty() && context.lock.empty())
        return {"the lock's name is empty", "names are 1 to 512 bytes", "name one; was a variable not set?"};
      return {fmt::format("'{}' is not a lock's name",
                          shortened(p.bare_subject.empty() ? visible_word(context.lock) : p.bare_subject)),
              p.why.empty() ? "names are 1 to 512 bytes of UTF-8 without control characters" : p.why,
              context.plain || is_too_long ? "another name, of 1 to 512 bytes"
                                           : "another name, the same for all who share the lock"};
    case errc::fence_too_far:
      return {fmt::format("--min-fence {} is more than a year ahead of the clock of {}", context.min_fence.to_string(),
                          p.server),
              "tokens are microseconds of that clock, and all later ones would have to be above this one",
              "look where the number came from"};
    case errc::invalid_option: return for_option(p, context);
    case errc::invalid_uri: return for_uri(p, context);
    case errc::no_server: return {"no server was named", "", "export HOLDFAST_URI=redis://HOST:PORT, or --uri"};
    case errc::timed_out: return {fmt::format("somebody else held {} all the time", p.lock), "", "a longer -w"};
    case errc::cancelled: return {"the wait was cancelled", "", ""};
    case errc::not_held:
      return {fmt::format("nobody holds {}: there is nothing to break", p.lock), "",
              fmt::format("nothing is to be done; {}", way_to_look(p, context))};
    case errc::changed_hands:
      return {fmt::format("{} is not held under that token any more; nothing was broken", p.lock),
              "it changed hands since you looked", fmt::format("look again: holdfast show {}", p.lock_argument)};
    default:
      return {visible(e.what()), "this is a defect of holdfast", "please report it with the command that you typed"};
  }
}

// What may have happened while nobody heard, and what to do about it.
sentences aftermath(const pieces& p, intent what) {
  switch (what) {
    case intent::look: return {"", "nothing was changed: it was only asked", "try again"};
    case intent::break_lock:
      return {"", fmt::format("so nobody knows whether {} was broken", p.lock),
              fmt::format("look whether it still is held (holdfast show {}), and try again", p.lock_argument)};
    case intent::resize:
      return {"", fmt::format("so nobody knows which size {} has", p.lock),
              fmt::format("look (holdfast show {}), and try again: to say it twice does no harm", p.lock_argument)};
    case intent::declare: return {"", "so nobody knows whether it heard it", "again: to say it twice does no harm"};
    case intent::take: break;
  }
  const auto left = p.remains.empty()
                        ? std::string{"if it took the lock, the lock ends with its ttl"}
                        : fmt::format("if it took the lock, the lock is left taken for {} at most", p.remains);
  return {"", fmt::format("so nobody knows whether {} was taken; {}", p.lock, left),
          fmt::format("look at who holds it (holdfast show {}), and try again", p.lock_argument)};
}

sentences for_unknown(errc cause, const pieces& p, const fault_context& context) {
  auto said = aftermath(p, context.what);
  const auto about = context.lock.empty() ? std::string{} : fmt::format(" for {}", p.lock);
  if (cause == errc::unexpected_reply) {
    said.text = fmt::format("{} gave an answer that holdfast does not understand{}", p.server, p.colon_words);
    // Another try would get the same one.
    said.fix = fmt::format("look what answers there: a proxy, or another protocol on that port{}",
                           context.lock.empty() || context.what == intent::look
                               ? ""
                               : fmt::format("; and who holds it: holdfast show {}", p.lock_argument));
  } else {
    said.text = fmt::format("{} got the request{} and its answer never came{}", p.server, about, p.tried);
  }
  // Of a quorum: which of its servers.
  if (!p.why.empty()) said.why = fmt::format("{}; {}", p.why, said.why);
  return said;
}

// Was it the sentinels who refused, and not the primary? Then the words are those of each of them, by its name.
bool is_of_sentinels(const pieces& p) {
  constexpr std::string_view scheme = "+sentinel://";
  const auto at = p.server.find(scheme);
  if (at == p.server.npos) return false;
  const auto first = p.server.substr(at + scheme.size());
  return p.words.starts_with(fmt::format("{}: ", first.substr(0, first.find_first_of(",/"))));
}

// The command that is missing, if the server named it: "... to run the 'evalsha' command".
std::string way_out_of_denial(const pieces& p) {
  // Not of the rule, on purpose.
  if (p.subject == "SCAN")
    return fmt::format("ACL SETUSER USER {}, for operators: it shows the names of all keys, other people's too",
                       acl_of_listing);
  const bool is_named = p.subject.starts_with("user '");
  // They have users of their own, and need none of what locks need.
  if (is_of_sentinels(p))
    return fmt::format("on each sentinel: ACL SETUSER {} {}", is_named ? shell_quoted(p.bare_subject) : "USER",
                       acl_of_sentinels);
  constexpr const char* rule = "`holdfast help acl` has the one ACL rule that locks need";
  constexpr std::string_view before = "to run the '";
  const auto at = p.words.find(before);
  if (at == p.words.npos || !is_named) return rule;
  const auto begin = at + before.size();
  const auto end = p.words.find_first_not_of("abcdefghijklmnopqrstuvwxyz|", begin);
  if (end == p.words.npos || end == begin || p.words[end] != '\'') return rule;
  return fmt::format("ACL SETUSER {} +{}; {}", shell_quoted(p.bare_subject), p.words.substr(begin, end - begin), rule);
}

bool is_of_quorum(const pieces& p) { return p.server.find("+quorum://") != p.server.npos; }

// Of a quorum `resize` is refused, for the sake of those who hold it (decision 23).
std::string way_to_another_size(const pieces& p) {
  if (is_of_quorum(p)) return "another one: let all give it back, and resize it on each server alone";
  return fmt::format("another one for all: holdfast resize {} N", p.meant_lock_argument);
}

constexpr auto way_to_sentinels = "they have their own: HOLDFAST_SENTINEL_USER and HOLDFAST_SENTINEL_PASSWORD";

constexpr auto way_to_give_it = "put it into REDISCLI_AUTH or a file (--password-file); both keep it out of `ps`";
constexpr auto way_to_keep_it =
    "a holdfast takes it out of its command's environment: --keep-password above, or --password-file FILE here";

// Of a user who was named without one, too: the server takes that for a wrong one.
sentences for_missing_password(const pieces& p, std::string_view user, const fault_context& context) {
  const auto way = context.is_under_another ? way_to_keep_it : way_to_give_it;
  return {fmt::format("{} wants a password{} and none was given", p.reached,
                      user.empty() ? "" : fmt::format(" for user '{}'", user)),
          p.words, is_of_sentinels(p) ? way_to_sentinels : way};
}

sentences for_refusal(errc cause, const pieces& p, const fault_context& context) {
  switch (cause) {
    case errc::no_password: return for_missing_password(p, "", context);
    case errc::wrong_password:
      if (!context.has_password && !is_of_sentinels(p)) return for_missing_password(p, p.bare_subject, context);
      return {fmt::format("{} does not accept this password{}", p.server,
                          p.subject.empty() ? "" : fmt::format(" for user '{}'", p.bare_subject)),
              p.words,
              is_of_sentinels(p) ? way_to_sentinels
                                 : "check user and password: HOLDFAST_URI, REDISCLI_AUTH or --password-file"};
    case errc::no_permission:
      return {fmt::format("{} does not permit {}{}", p.server, p.subject.empty() ? "that" : p.subject, p.colon_words),
              "", way_out_of_denial(p)};
    case errc::wrong_database:
      return {fmt::format("database {} does not exist on {}{}", p.subject, p.server, p.colon_words),
              "locks in different databases do not see each other",
              p.words.find("cluster mode") == p.words.npos
                  ? "the same /N on every client, normally none; a server has 0 to 15 unless it was told otherwise"
                  : "remove the /N: a cluster has database 0 only"};
    case errc::not_a_primary:
      // Each of them is to be a primary, and the one that it copies may be among them.
      if (is_of_quorum(p))
        return {fmt::format("too many servers of {} are replicas; a primary's vote alone counts", p.server), p.words,
                "REPLICAOF NO ONE on each of them, or another server in its place; which they are: holdfast doctor"};
      return {fmt::format("{} is a replica; locks must be taken on the primary", p.server), p.words,
              "name the primary, or look why it was demoted"};
    case errc::other_size:
      return {fmt::format("{} is a semaphore of another size{}", p.lock, p.colon_words), p.why,
              fmt::format("the same --limit everywhere; `holdfast show {}` says which it is; {}", p.lock_argument,
                          way_to_another_size(p))};
    case errc::wrong_kind:
      if (p.why.starts_with("it is a lock") || p.why.starts_with("it is a sem") || p.why.starts_with("it is a sha"))
        return {fmt::format("{} is used as something else on {}", p.lock, p.server), p.why,
                "one name, one kind: -s and -x for readers and writers, -l N for a limit, neither for a lock; it is "
                "forgotten a week after the last use"};
      return {fmt::format(
                  "key '{}' exists on {} but is not a holdfast lock{}",
                  p.subject.empty() ? visible(fmt::format("{}{{{}}}", context.prefix, context.lock)) : p.bare_subject,
                  p.server, p.colon_words),
              p.why.empty() ? "some other program uses that key" : fmt::format("{}, of some other program", p.why),
              context.what == intent::break_lock ? "end it with the means of that program"
              : context.plain                    ? "another name"
                                                 : "another name, or another --prefix"};
    case errc::wrong_server:
      if (is_of_sentinels(p))
        return {fmt::format("{} is not watched by sentinels there{}", p.server, p.colon_words), p.why,
                "the sentinels' port, 26379 unless they say another; one Redis without them is redis://HOST:PORT"};
      if (p.words.starts_with("CROSSSLOT"))
        return {fmt::format("{} cannot be kept on a cluster{}", p.lock, p.colon_words),
                "the key has a } and no hash tag: what is kept beside it is in another slot",
                "a key without }, or with a hash tag: {...}"};
      return {fmt::format("{} cannot serve locks{}", p.server, p.colon_words), p.why,
              "the port of a Redis 6.2 or newer, no sentinel; a cluster is redis+cluster://A,B,C, and one Redis is "
              "redis://"};
    case errc::other_quorum:
      return {fmt::format("a server of {} belongs to another list of servers", p.server), p.words,
              p.why.empty() ? "the same servers and the same generation in every client's URI" : p.why};
    case errc::script_mismatch:
      return {fmt::format("{} loads our scripts as something else{}", p.server, p.colon_words), "",
              "something between us and the server changes what we send; go to it directly"};
    case errc::local_server: return for_local(p, context);
    default: return {};
  }
}

sentences for_loss(errc cause, const pieces& p) {
  switch (cause) {
    case errc::lease_expired: return {fmt::format("lost {}: no renewal was confirmed in time", p.lock), "", ""};
    case errc::lease_gone:
      return {fmt::format("lost {}: the server has no such lease any more", p.lock),
              "it was deleted, evicted or flushed", "holdfast doctor" + p.server_argument};
    case errc::lease_taken: return {fmt::format("lost {}: somebody else holds it now", p.lock), "", ""};
    case errc::lease_held_too_long:
      return {fmt::format("lost {}: it was held for as long as --max-hold allows", p.lock), "", ""};
    default: return {fmt::format("lost {}: it was broken on purpose", p.lock), "", ""};
  }
}

sentences sentences_for(errc cause, const error& e, const fault_context& context) {
  const pieces p{e, context};
  if (e.code() == outcome::unknown || cause == errc::cancelled_in_flight) return for_unknown(cause, p, context);
  if (e.code() == outcome::lost) return for_loss(cause, p);
  // Each of these knows its own causes and gives an empty text for the others.
  if (auto s = for_connection(cause, p, context); !s.text.empty()) return s;
  if (auto s = for_refusal(cause, p, context); !s.text.empty()) return s;
  if (auto s = for_trouble(cause, p, context); !s.text.empty()) return s;
  return for_request(cause, p, e, context);
}

}  // namespace

fault describe(const error& e, const fault_context& context) {
  if (e.code().category() != error_category()) return describe(static_cast<const std::exception&>(e));
  const auto cause = static_cast<errc>(e.code().value());
  const auto* row = row_of(cause);
  auto [text, why, fix] = sentences_for(cause, e, context);
  if (why.empty() && e.code() != outcome::unknown) why = visible(e.detail().why);
  return {.code = row ? row->code : "E21",
          .cause = to_string(cause),
          .text = std::move(text),
          .why = std::move(why),
          .fix = std::move(fix),
          .endpoint = visible(e.detail().endpoint),
          .server_text = visible(e.detail().server_text),
          .exit = row ? row->exit : exit_code::defect};
}

fault describe(const std::exception& e) {
  const auto* failed = dynamic_cast<const std::system_error*>(&e);
  // For a thread, of ours or of the library, or for the command that was to run: a limit, and no defect.
  if (failed && failed->code() == std::errc::resource_unavailable_try_again) {
    return {.code = "E21",
            .text = "the system gives this process no more threads or processes",
            .why = "a limit of the user, the service or the container is reached, or a thread's stack finds no room",
            .fix = "raise it: ulimit -u, TasksMax= of a systemd unit, pids.max of a container; or lower ulimit -s",
            .exit = exit_code::defect};
  }
  if (failed && (failed->code() == std::errc::too_many_files_open ||
                 failed->code() == std::errc::too_many_files_open_in_system)) {
    return {.code = "E21",
            .text = "this process, or this machine, has no descriptor left",
            .why = fmt::format("{}; the lock was not kept", visible(e.what())),
            .fix = way_to_descriptors,
            .exit = exit_code::defect};
  }
  if (dynamic_cast<const cannot_print*>(&e)) {
    return {.code = "E21",
            .text = visible(e.what()),
            .why = "standard output is closed or full, or nobody reads it any more",
            .fix = "send it to where there is room: > FILE, or > /dev/null",
            .exit = exit_code::defect};
  }
  return {.code = "E21",
          .text = visible(e.what()),
          .why = "this is a defect of holdfast, or this machine is out of something",
          .exit = exit_code::defect};
}

}  // namespace holdfast::cli
