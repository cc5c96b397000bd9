// SPDX-License-Identifier: Apache-2.0
#include "script/source.hpp"

#include "resp/writer.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

namespace holdfast::script {

namespace {

std::string sha1_of(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", digest[i]);
    hex += two;
  }
  return hex;
}

TEST(source, every_id_finds_its_script) {
  for (const auto& s : all()) EXPECT_EQ(&find(s.which), &s) << s.name;
  EXPECT_EQ(all().size(), 25u);
}

// Each connection sends them: what only those need who wait, ask or break goes by text when it is needed.
TEST(source, the_usual_ones_are_what_every_lease_needs) {
  ASSERT_EQ(usual().size(), 3u);
  EXPECT_EQ(usual()[0].name, "acquire");
  EXPECT_EQ(usual()[1].name, "renew");
  EXPECT_EQ(usual()[2].name, "release");
}

// B58: a digest that is not the server's makes every call NOSCRIPT. CMake took it from the text before it wrote that
// down: equal only if the embedding is exact to the byte.
TEST(source, digest_is_of_the_exact_text_B58) {
  for (const auto& s : all()) EXPECT_EQ(sha1_of(s.text), s.sha1) << s.name;
}

TEST(source, every_script_has_its_contract_on_top) {
  for (const auto& s : all()) {
    std::ifstream file{std::string{HOLDFAST_SCRIPT_DIRECTORY "/"}.append(s.name).append(".lua")};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    EXPECT_TRUE(text.starts_with("-- SPDX-License-Identifier: Apache-2.0\n-- " + std::string{s.name} + ": ")) << s.name;
    EXPECT_NE(text.find("-- KEYS[1]"), std::string::npos) << s.name;
    EXPECT_NE(text.find("-- Returns"), std::string::npos) << s.name;
  }
}

// The first connection to a server carries three of them in one write, and they fit into what TCP sends before it has
// heard anything: ten segments, on an Ethernet 1,448 bytes each.
TEST(source, only_code_travels) {
  for (const auto& s : all()) {
    std::istringstream lines{std::string{s.text}};
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(line.empty() || line.starts_with(" ") || line.find("--") != line.npos) << s.name << ": " << line;
    }
  }
  std::string write;
  for (const auto& s : usual()) resp::append_request(write, std::array<std::string_view, 3>{"SCRIPT", "LOAD", s.text});
  EXPECT_LE(write.size(), 10U * 1'448);
}

// 9.2: what has had holes in it, and what would make a script more than constant text.
TEST(source, scripts_use_nothing_dangerous) {
  for (const auto& s : all()) {
    for (const auto* word : {"cjson", "cmsgpack", "unpack", "loadstring", "tostring", "#!", "bit."}) {
      std::string code;
      std::istringstream lines{std::string{s.text}};
      for (std::string line; std::getline(lines, line);) {
        code += line.substr(0, line.find(" -- ")) + "\n";
      }
      EXPECT_EQ(code.find(word), std::string::npos) << s.name << " uses " << word;
    }
  }
}

// B67: a key that does not come through KEYS breaks on a cluster and goes around the ACL.
TEST(source, scripts_take_every_key_from_KEYS_B67) {
  const std::regex any_call{R"(\bp?call\('([A-Z]+)'(,\s*([A-Z]+)\[)?)"};
  for (const auto& s : all()) {
    const std::string text{s.text};
    for (std::sregex_iterator at{text.begin(), text.end(), any_call}, end; at != end; ++at) {
      const bool has_key = (*at)[1] != "TIME" && (*at)[1] != "PUBLISH" && (*at)[1] != "SPUBLISH" &&
                           (*at)[1] != "PUBSUB" && (*at)[1] != "INFO";
      EXPECT_TRUE(!has_key || (*at)[3] == "KEYS") << s.name << ": " << at->str();
    }
  }
}

TEST(source, time_is_read_once) {
  for (const auto& s : all()) {
    const auto first = s.text.find("call('TIME')");
    ASSERT_NE(first, std::string_view::npos) << s.name;
    EXPECT_EQ(s.text.find("call('TIME')", first + 1), std::string_view::npos) << s.name;
  }
}

}  // namespace

}  // namespace holdfast::script
