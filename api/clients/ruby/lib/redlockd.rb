# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# Distributed locks of a redlockd server: see Redlockd::Client and Redlockd::Lock.
module Redlockd
end

require_relative "redlockd/errors"
require_relative "redlockd/clock"
require_relative "redlockd/answer"
require_relative "redlockd/grant"
require_relative "redlockd/wanted"
require_relative "redlockd/replicas"
require_relative "redlockd/talk"
require_relative "redlockd/identity"
require_relative "redlockd/timers"
require_relative "redlockd/coalescer"
require_relative "redlockd/dispatcher"
require_relative "redlockd/caller"
require_relative "redlockd/renewals"
require_relative "redlockd/keeper"
require_relative "redlockd/lock"
require_relative "redlockd/held_lock"
require_relative "redlockd/client"
