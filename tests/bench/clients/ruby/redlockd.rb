# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# lock with a block of our package; threads share one client.

require "redlockd"
require_relative "tally"

client = Redlockd::Client.new(WHERE)
tally { |name| client.lock(name, ttl: TTL_S) {} }
