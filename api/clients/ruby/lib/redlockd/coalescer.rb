# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Redlockd
  # An acquire, an extend or a release, from when it is requested until it has its
  # Answer.
  class Operation
    attr_reader :wanted # the Send
    attr_accessor :request, # that it is a part of, while that is under way
                  :answer,
                  :is_alone, # a batch with it was refused
                  :has_left # nobody waits for its Answer

    # mailbox: a Thread::Queue that gets [owner, Request or Answer].
    def initialize(wanted, mailbox, owner = nil)
      @wanted = wanted
      @mailbox = mailbox
      @owner = owner
    end

    # A Request has to be carried out by whoever reads the mailbox.
    def tell(what)
      @mailbox << [@owner, what]
    end

    # Of one that was left: its Answer, for which this waits if it is in a batch.
    def outcome
      @mailbox.pop until @answer
      @answer
    end

    def acquire?
      wanted.http_method == "POST"
    end
  end

  # What is sent at once: an operation, or a batch of them.
  class Request
    attr_reader :operations
    attr_accessor :has_place, :is_under_way,
                  :timer # the Dispatcher's

    def initialize(operations, is_batch:, has_place:)
      @operations = operations
      @is_batch = is_batch
      @has_place = has_place
      @is_under_way = true
      operations.each { |operation| operation.request = self }
    end

    def batch?
      @is_batch
    end

    def wanted
      return @operations.first.wanted unless @is_batch

      items = @operations.map { |operation| operation.wanted.item }
      Send.new(http_method: "POST", path: "/batch", body: %({"operations":[#{items.join(',')}]}),
               timeout_ms: @operations.map { |operation| operation.wanted.timeout_ms }.min)
    end
  end

  # What a batch has so far.
  class Load
    LONGEST_BODY = 48 * 1024 # bytes; a server takes 64 KiB
    FRAME = '{"operations":[]}'.size
    # The shortest timeout in a batch is that of all: no other is longer than so many
    # times as long.
    SPREAD = 2.0

    # Whether it may be in a batch at all.
    def self.fits?(wanted)
      FRAME + wanted.item.bytesize <= LONGEST_BODY
    end

    def initialize(first)
      @groups = {} # by resource
      @tokens = {}
      @bytes = FRAME
      @shortest_ms = @longest_ms = first.timeout_ms
      add(first)
    end

    # Whether it may go along; it then does.
    def takes?(wanted)
      return false if @bytes + wanted.item.bytesize + 1 > LONGEST_BODY || clashes?(wanted)

      shortest_ms, longest_ms = [@shortest_ms, @longest_ms, wanted.timeout_ms].minmax
      return false if longest_ms > shortest_ms * SPREAD

      @shortest_ms = shortest_ms
      @longest_ms = longest_ms
      add(wanted)
      true
    end

    private

    def clashes?(wanted)
      scope = wanted.scope
      @tokens.key?(wanted.token) || scope.names.any? do |name|
        @groups.key?(name) && (scope.group.nil? || @groups[name] != scope.group)
      end
    end

    def add(wanted)
      @tokens[wanted.token] = true if wanted.token
      wanted.scope.names.each { |name| @groups[name] = wanted.scope.group }
      @bytes += wanted.item.bytesize + 1
    end
  end

  # Which operations go when, and which of them together, without I/O: see
  # docs/client-authors.md. Whoever uses it has a mutex.
  #
  #   add → collected → a place is free → take → under way → landed: an Answer each
  #            ↑                                   │
  #            └── refused as a batch ─────────────┤
  #                                                └→ ended: overdue, its place is free
  #
  # At most two short requests are under way: these are the places. Nothing is delayed:
  # a lone operation goes at once. Beside another request, an acquire goes in a batch even
  # if it is the only one: there it is tried once. As its single call it would keep its
  # place while the server tries it again, if clients have split the votes.
  class Coalescer
    PLACES = 2
    MOST = 100 # operations of a batch
    # What is the response to each operation, if it is that to the batch. All other
    # refusals are of the batch: then each operation goes alone.
    OF_EACH = [401, 403, 408, 421, 429].freeze

    def initialize
      @collected = [] # in the order in which they came
      @urgent = [] # these need no place
      @taken = @under_way = 0
    end

    # Before take.
    def add(operation)
      wanted = operation.wanted
      (wanted.must_wait || wanted.is_urgent ? @urgent : @collected) << operation
    end

    # The Request to send next; nil: there is none now.
    def take
      return take_urgent unless @urgent.empty?
      return if @collected.empty? || @taken == PLACES

      # with nothing beside it, it need not be tried first
      is_idle = @collected.size == 1 && @under_way.zero?
      return sent([@collected.shift]) if is_idle && @collected.first.wanted.wait_ms.positive?

      form(@collected, has_place: true)
    end

    # It counts no longer as under way: its response is overdue, or there.
    def ended(request)
      @under_way -= 1 if request.is_under_way
      @taken -= 1 if request.has_place
      request.is_under_way = request.has_place = false
    end

    # Shares out what came of the request. Returns the operations that have their Answer
    # now; others are collected again.
    def landed(request, answer)
      ended(request)
      shares = shares(request, answer)
      again, done = request.operations.zip(shares).partition do |operation, own|
        own.nil? && !operation.has_left
      end
      again.each { |operation, _| operation.is_alone = true }
      done.each { |operation, own| operation.answer = own || answer }
      request.operations.each { |operation| operation.request = nil }
      @collected.unshift(*again.map(&:first))
      done.map(&:first)
    end

    # It is not sent. Only while it is collected.
    def remove(operation)
      [@collected, @urgent].each { |list| list.delete(operation) }
    end

    private

    def take_urgent
      @urgent.first.wanted.must_wait ? sent([@urgent.shift]) : form(@urgent, has_place: false)
    end

    # The first of them, and what can go with it. The others keep their places.
    def form(list, has_place:)
      first = list.shift
      operations = [first]
      fill(operations, list) unless list.empty? || first.is_alone
      operations.each { |operation| operation.wanted.try_once }
      is_tried_once = @under_way.positive? && first.acquire? && !first.is_alone && Load.fits?(first.wanted)
      sent(operations, is_batch: operations.size > 1 || is_tried_once, has_place: has_place)
    end

    def fill(operations, list)
      load = Load.new(operations.first.wanted)
      stay = []
      until list.empty? || operations.size == MOST || stay.size == MOST
        operation = list.shift
        wanted = operation.wanted
        goes = !operation.is_alone && !wanted.must_wait && load.takes?(wanted)
        (goes ? operations : stay) << operation
      end
      list.unshift(*stay)
    end

    def sent(operations, is_batch: false, has_place: false)
      @under_way += 1
      @taken += 1 if has_place
      Request.new(operations, is_batch: is_batch, has_place: has_place)
    end

    # For each operation; nil: it has to go alone.
    def shares(request, answer)
      count = request.operations.size
      return [answer] unless request.batch?
      if answer.status < 200 || answer.status >= 500 || OF_EACH.include?(answer.status)
        return [answer] * count
      end
      # the first one of two may have been carried out
      return [answer.repeated? ? answer.without_result : nil] * count if answer.status >= 300

      results = answer.results
      return [answer.without_result] * count unless results&.size == count

      # alone, it may have a newer access token
      denied = answer.repeated? ? answer.without_result : nil
      results.map { |result| result.status == 401 ? denied : result }
    end
  end
end
