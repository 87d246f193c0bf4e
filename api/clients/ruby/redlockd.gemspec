# frozen_string_literal: true
# SPDX-License-Identifier: MIT

Gem::Specification.new do |gem|
  gem.name = "redlockd"
  gem.version = "0.1.0"
  gem.summary = "Distributed locks with fencing tokens: a client of redlockd"
  gem.authors = ["the redlockd authors"]
  gem.license = "MIT"
  gem.homepage = "https://github.com/redlockd/redlockd"
  gem.metadata = {
    "source_code_uri" => "https://github.com/redlockd/redlockd",
    "bug_tracker_uri" => "https://github.com/redlockd/redlockd/issues"
  }
  gem.files = Dir["lib/**/*.rb"] + %w[LICENSE README.md]
  gem.required_ruby_version = ">= 3.1"
end
