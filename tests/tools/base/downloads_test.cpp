// The command and the library each recognise the remains of failed downloads, because neither may include the
// other. Both must give the same answer.
#include "base/downloads.h"

#include <gtest/gtest.h>

#include "src/files/file_kind.h"

namespace command {
namespace {

TEST(Downloads, TheCommandAndTheLibraryAgree) {
  const std::string spaces(200, ' '), far(64, 'x');
  const std::string beginnings[] = {"",
                                    " ",
                                    " \n\t\r",
                                    "text",
                                    "{",
                                    "{}",
                                    "<",
                                    "<!doctyp",
                                    "<!doctype html>",
                                    "<!DOCTYPE HTML>",
                                    "\n <HtMl>",
                                    "<html",
                                    "<?xml version='1.0'?>",
                                    "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
                                    " version https://git-lfs.github.com/spec/v1",
                                    "version https://git-lfs.github.com/",
                                    "{\"error\": \"Repository not found\"}",
                                    "\n{\"message\":\"denied\"}",
                                    "{\"errors\": []}",
                                    "[{\"error\": 1}]",
                                    "{\"model_type\": \"bert\", \"error\": 1}",
                                    "{" + far + "\"error\"",
                                    "{" + far.substr(1) + "\"error\"",
                                    "{" + far.substr(2) + "\"error\"",
                                    "{" + far.substr(2) + "\"message\"",
                                    spaces + "{\"error\": 1}",
                                    spaces + "<html>",
                                    "\xef\xbb\xbf<html>",
                                    std::string("\0<html>", 7),
                                    "PK\x03\x04",
                                    "<svg>",
                                    "<!DOCUMENT"};
  size_t found = 0;
  for (const std::string& beginning : beginnings)
    for (const size_t size : {beginning.size(), size_t{511}, size_t{65535}, size_t{65536}, size_t{1} << 33}) {
      const Download kind = kind_of_download(beginning, size);
      const std::string by_command = description_of(kind),
                        by_library = stw::kind_of_download(beginning, size);
      if (kind == Download::empty) EXPECT_TRUE(by_library.starts_with("empty")) << by_library;
      else EXPECT_EQ(by_command, by_library) << beginning << ", " << size;
      found += !by_command.empty();
    }
  EXPECT_GT(found, 40u);
}

}  // namespace
}  // namespace command
