// SPDX-License-Identifier: Apache-2.0
#include "script/server_error.hpp"

#include <array>

namespace holdfast::script {

namespace {

struct row {
  std::string_view text;
  errc code;
  reaction what;
};

// The first word of an error, as a whole word.
constexpr std::array words{
    row{"NOSCRIPT", errc::server_refused, reaction::load_script},
    row{"LOADING", errc::server_loading, reaction::try_again},
    row{"MASTERDOWN", errc::server_loading, reaction::try_again},
    row{"CLUSTERDOWN", errc::server_refused, reaction::try_again},
    row{"TRYAGAIN", errc::server_refused, reaction::try_again},
    row{"BUSY", errc::server_busy, reaction::try_again},
    row{"UNKILLABLE", errc::server_busy, reaction::try_again},
    row{"READONLY", errc::not_a_primary, reaction::reconnect},
    row{"UNBLOCKED", errc::not_a_primary, reaction::reconnect},
    row{"NOAUTH", errc::no_password, reaction::give_up},
    row{"WRONGPASS", errc::wrong_password, reaction::give_up},
    row{"NOPERM", errc::no_permission, reaction::give_up},
    row{"WRONGTYPE", errc::wrong_kind, reaction::give_up},
    row{"OOM", errc::out_of_memory, reaction::keep},
    row{"MISCONF", errc::server_refused, reaction::keep},
    row{"NOREPLICAS", errc::server_refused, reaction::keep},
    row{"DENIED", errc::server_refused, reaction::give_up},
    row{"EXECABORT", errc::server_refused, reaction::give_up},
    row{"MOVED", errc::wrong_server, reaction::elsewhere},
    row{"ASK", errc::wrong_server, reaction::elsewhere},
    row{"CROSSSLOT", errc::wrong_server, reaction::give_up},
};

// What begins with ERR is told apart by its sentence only. Compared at the start of what follows "ERR ".
constexpr std::array sentences{
    row{"AUTH <password> called without any password configured", errc::wrong_password, reaction::give_up},
    row{"Client sent AUTH, but no password is set", errc::wrong_password, reaction::give_up},
    row{"invalid password", errc::wrong_password, reaction::give_up},
    row{"DB index is out of range", errc::wrong_database, reaction::give_up},
    row{"invalid DB index", errc::wrong_database, reaction::give_up},
    row{"SELECT is not allowed in cluster mode", errc::wrong_database, reaction::give_up},
    row{"max number of clients", errc::server_refused, reaction::reconnect},
    row{"Protocol error", errc::server_refused, reaction::reconnect},
    row{"WAIT cannot be used with replica", errc::not_a_primary, reaction::reconnect},
    row{"unknown command", errc::wrong_server, reaction::give_up},
    row{"Unknown Redis command called from", errc::wrong_server, reaction::give_up},
    row{"The user executing the script can't", errc::no_permission, reaction::give_up},
    row{"ACL failure in script", errc::no_permission, reaction::give_up},
};

constexpr classified unknown{errc::server_refused, reaction::give_up};

bool is_word_at(std::string_view text, std::size_t at, std::string_view word) {
  if (text.substr(at, word.size()) != word) return false;
  const std::size_t end = at + word.size();
  return end == text.size() || text[end] == ' ';
}

// Redis 6.2 wraps what a script raised: "Error running script (call to f_...): @user_script:5: -OOM command not...".
// Its place in that sentence differs from error to error, so it is searched for, behind the script's mark.
classified in_a_script(std::string_view text) {
  const auto mark = text.find("@user_script");
  if (mark == std::string_view::npos) return unknown;
  text.remove_prefix(mark);
  for (const auto& r : words) {
    for (auto at = text.find(r.text); at != std::string_view::npos; at = text.find(r.text, at + 1)) {
      if ((text[at - 1] == ' ' || text[at - 1] == '-') && is_word_at(text, at, r.text)) return {r.code, r.what};
    }
  }
  for (const auto& r : sentences) {
    if (text.find(r.text) != std::string_view::npos) return {r.code, r.what};
  }
  return unknown;
}

}  // namespace

classified classify(std::string_view text) {
  for (const auto& r : words) {
    if (is_word_at(text, 0, r.text)) return {r.code, r.what};
  }
  // Of 6.2, where a script gave it back as its own answer.
  if (text.starts_with("@user_script")) return in_a_script(text);
  constexpr std::string_view general = "ERR ";
  if (!text.starts_with(general)) return unknown;
  text.remove_prefix(general.size());
  if (text.starts_with("Error running script") || text.starts_with("Error compiling script")) return in_a_script(text);
  for (const auto& r : sentences) {
    if (text.starts_with(r.text)) return {r.code, r.what};
  }
  return unknown;
}

bool is_of_no_cluster(std::string_view text) {
  return text.starts_with("ERR This instance has cluster support disabled");
}

}  // namespace holdfast::script
