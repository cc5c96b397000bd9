// SPDX-License-Identifier: Apache-2.0
// A socket that answers what a test tells it to: for error words that a real server cannot be made to say at will
// (H27), for silence (H22), and for peers that are no Redis. It reads whole requests, so that it answers in step.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

class scripted_server {
public:
  // Gets a request's words and gives the bytes of the answer; empty: says nothing. Called on the server's thread.
  using script = std::function<std::string(const std::vector<std::string>& words)>;

  explicit scripted_server(script answers);
  ~scripted_server();
  scripted_server(const scripted_server&) = delete;
  scripted_server& operator=(const scripted_server&) = delete;

  std::string uri() const;

  // Accepts connections and never says a word.
  static script silence();

  // As a Redis 7 without data would greet us, and `word` as the answer to every script call.
  static script greets_and_answers_scripts_with(std::string answer);

private:
  struct hidden;
  std::unique_ptr<hidden> hidden_;
};

}  // namespace holdfast::test
