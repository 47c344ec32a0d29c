// Each line of the input is a filter and a record; each line of the output says whether they match.
import com.fasterxml.jackson.databind.ObjectMapper
import software.amazon.event.ruler.Ruler

def json = new ObjectMapper()
System.in.eachLine('UTF-8') { line ->
  def pair = json.readTree(line)
  try {
    println Ruler.matchesRule(pair.get('event').toString(), pair.get('pattern').toString())
  } catch (Exception e) {
    println 'refused: ' + e.message.replaceAll(/\s+/, ' ')
  }
}
