// SPDX-License-Identifier: Apache-2.0
// One RESP2 reply as a value, owned and self-contained.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holdfast::resp {

struct nil {
  friend bool operator==(nil, nil) = default;
};
struct status {  // "+OK"
  std::string text;
  friend bool operator==(const status&, const status&) = default;
};
struct server_error {  // "-ERR ...", never empty, and without what a request said that it did not know
  std::string text;
  friend bool operator==(const server_error&, const server_error&) = default;
};

// A bulk string is a std::string; an array is a vector of values.
class value {
public:
  using array = std::vector<value>;

  value() = default;  // nil
  value(nil) {}
  value(std::int64_t n) : held_{n} {}
  value(std::string text) : held_{std::move(text)} {}
  value(status s) : held_{std::move(s)} {}
  value(server_error e) : held_{std::move(e)} {}
  value(array elements) : held_{std::move(elements)} {}

  bool is_nil() const { return std::holds_alternative<nil>(held_); }
  const std::int64_t* as_integer() const { return std::get_if<std::int64_t>(&held_); }
  const std::string* as_bulk() const { return std::get_if<std::string>(&held_); }
  const status* as_status() const { return std::get_if<status>(&held_); }
  const server_error* as_error() const { return std::get_if<server_error>(&held_); }
  const array* as_array() const { return std::get_if<array>(&held_); }

  friend bool operator==(const value&, const value&) = default;

private:
  std::variant<nil, std::int64_t, std::string, status, server_error, array> held_;
};

}  // namespace holdfast::resp
